"""Nested tensors: not supported.

Each name of `torch.nested` is there and raises NotImplementedError when it is called;
sequences of different lengths are padded (`nn.utils.rnn`) or masked here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from torchshim._lazy import submodules as _submodules

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]


def _refused(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"torch.nested.{name} is not supported: pad the sequences "
            "(torch.nn.utils.rnn.pad_sequence) or mask them"
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Not supported: NotImplementedError."
    return refuse


as_nested_tensor = _refused("as_nested_tensor")
masked_select = _refused("masked_select")
narrow = _refused("narrow")
nested_tensor = _refused("nested_tensor")
nested_tensor_from_jagged = _refused("nested_tensor_from_jagged")
to_padded_tensor = _refused("to_padded_tensor")

__getattr__ = _submodules(__name__, "_internal")
