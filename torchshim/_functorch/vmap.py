"""`vmap`, by its place in PyTorch, and its steps, which libraries replace here."""

from __future__ import annotations

import sys

from torchshim._functions.vmap import (
    _add_batch_dim,
    _create_batched_inputs,
    _maybe_remove_batch_dim,
    _process_batched_inputs,
    _remove_batch_dim,
    _unwrap_batched,
    restore_vmap,
    steps,
    vmap,
)
from torchshim._functions.vmap import name_of as _get_name
from torchshim._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten
from torchshim._tensor import Tensor

__all__ = [
    "Tensor",
    "_add_batch_dim",
    "_broadcast_to_and_flatten",
    "_create_batched_inputs",
    "_get_name",
    "_maybe_remove_batch_dim",
    "_process_batched_inputs",
    "_remove_batch_dim",
    "_unwrap_batched",
    "restore_vmap",
    "tree_flatten",
    "tree_unflatten",
    "vmap",
]

steps[0] = sys.modules[__name__]
