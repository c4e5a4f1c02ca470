"""Where PyTorch defines what groups do; programs import names from here, too."""

from __future__ import annotations

from typing import Any

import numpy as np

import torchshim
from torchshim._tensor import Tensor
from torchshim.distributed import *  # noqa: F403
from torchshim.distributed._group import ProcessGroup, _world, chosen, is_elsewhere
from torchshim.distributed._objects import _pickled, _unpickled
from torchshim.distributed._reductions import RedOpType as RedOpType
from torchshim.distributed._stores import Store


def _get_default_group() -> ProcessGroup:
    """The default group. ValueError if there is none."""
    return chosen()


def _get_default_store() -> Store:
    """The store of the default group. ValueError if there is none."""
    chosen()
    return _world.store


def _rank_not_in_group(group: Any) -> bool:
    """Whether this process is not a member."""
    return is_elsewhere(group)


def _object_to_tensor(
    obj: Any, device: Any = None, group: Any = None
) -> tuple[Tensor, Tensor]:
    """An object's pickle as a tensor of bytes, and its length."""
    data = torchshim.tensor(_pickled(obj), device=device)
    return data, torchshim.tensor([data.numel()], device=device)


def _tensor_to_object(tensor: Tensor, tensor_size: Any, group: Any = None) -> Any:
    """The object whose pickle a tensor holds in its first bytes."""
    return _unpickled(np.asarray(tensor._host())[: int(tensor_size)])
