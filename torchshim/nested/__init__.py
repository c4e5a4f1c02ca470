"""Tensors of tensors whose sizes differ: `torch.nested`.

A batch of sequences of different lengths acts as one tensor, without padding.
https://docs.pytorch.org/docs/2.13/nested.html
"""

from __future__ import annotations

from typing import Any

from torchshim._core.layout import NAMES as _LAYOUTS
from torchshim._core.layout import strided as _strided
from torchshim._core.ragged import SymInt as _SymInt
from torchshim._core.record import untracked as _untracked
from torchshim._functions import nested_construct as _jagged
from torchshim._functions.construct import tensor as _tensor
from torchshim._functions.nested_strided import of_list as _of_list
from torchshim._functions.nested_tensor import view_of as _view_of
from torchshim._lazy import submodules as _submodules
from torchshim._tensor import Tensor as _Tensor

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]
_JAGGED = _LAYOUTS["jagged"]


def _unsupported(what: str, layout: Any) -> RuntimeError:
    return RuntimeError(f"Specified layout is unsupported for nested {what}: {layout}")


def nested_tensor(
    tensor_list: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """A new nested tensor, a leaf, of a list of tensors or of what makes tensors.

    https://docs.pytorch.org/docs/2.13/nested.html

    >>> import torchshim as torch
    >>> parts = [torch.ones(2, 3), torch.ones(1, 3)]
    >>> torch.nested.nested_tensor(parts, layout=torch.jagged).values().shape
    torch.Size([3, 3])
    """
    if layout is None or layout is _strided:
        if not isinstance(tensor_list, list):
            raise TypeError(
                "Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in "
                "nested_tensor"
            )
        given = [t if isinstance(t, _Tensor) else _tensor(t) for t in tensor_list]
        with _untracked():
            made = _of_list(given, dtype, device)
        return made.requires_grad_(requires_grad)
    if layout is not _JAGGED:
        raise _unsupported("tensors", layout)
    return _jagged.nested_tensor(tensor_list, dtype, device, requires_grad, pin_memory)


def as_nested_tensor(
    ts: Any, dtype: Any = None, device: Any = None, layout: Any = None
) -> Any:
    """A nested tensor with the history of a list of tensors, or of one tensor.

    https://docs.pytorch.org/docs/2.13/nested.html

    >>> import torchshim as torch
    >>> a, b = torch.ones(2, requires_grad=True), torch.ones(1)
    >>> torch.nested.as_nested_tensor([a, b], layout=torch.jagged).sum().backward()
    >>> a.grad
    tensor([1., 1.])
    """
    several = isinstance(ts, (list, tuple))
    if not all(isinstance(t, _Tensor) for t in (ts if several else [ts])):
        raise TypeError(
            "as_nested_tensor(): Expected first argument to be a tensor or a list / "
            "tuple of tensors "
        )
    if not several and ts.dim() < 2:
        raise RuntimeError(
            "as_nested_tensor(): Expected tensor argument to have dim() > 1"
        )
    if not several and ts.is_nested:
        if layout is ts.layout:
            return ts.to(device=device, dtype=dtype)
        raise RuntimeError(
            "as_nested_tensor(): Converting between nested tensor layouts is not "
            "supported"
        )
    if layout is None or layout is _strided:
        if not several:
            return _of_list(list(ts.to(device=device, dtype=dtype)))
        return _of_list(list(ts), dtype, device)
    if layout is not _JAGGED:
        raise _unsupported("tensors", layout)
    if several:
        return _jagged.jagged_from_list(ts, None, dtype, device)[0]
    return _jagged.jagged_from_padded(ts, device, dtype)


def nested_tensor_from_jagged(
    values: Any,
    offsets: Any = None,
    lengths: Any = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Any:
    """A nested tensor on the memory of `values`, which has all of them in a row.

    `offsets` says where each begins, `lengths` how long each is.
    https://docs.pytorch.org/docs/2.13/nested.html

    >>> import torchshim as torch
    >>> values, offsets = torch.arange(4), torch.tensor([0, 1, 4])
    >>> torch.nested.nested_tensor_from_jagged(values, offsets)[1]
    tensor([1, 2, 3])
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError(
                "nested_tensor_from_jagged(): At least one of offsets or lengths is "
                "required."
            )
        offsets, lengths = _jagged.offsets_of(lengths), None
    if jagged_dim is None:
        jagged_dim = 1
    elif jagged_dim < 1:
        raise ValueError(f"Expected jagged_dim >=1, but got {jagged_dim}.")
    return _view_of(values, offsets, lengths, jagged_dim, min_seqlen, max_seqlen)


def narrow(
    tensor: Any, dim: int, start: Any, length: Any, layout: Any = _strided
) -> Any:
    """A nested tensor of a piece of each row of a tensor.

    https://docs.pytorch.org/docs/2.13/nested.html

    >>> import torchshim as torch
    >>> x = torch.arange(6).view(2, 3)
    >>> begin, length = torch.tensor([0, 1]), torch.tensor([1, 2])
    >>> torch.nested.narrow(x, 1, begin, length, layout=torch.jagged)[1]
    tensor([4, 5])
    """
    for name, given in (("start", start), ("length", length)):
        if not isinstance(given, (int, _SymInt, _Tensor)):
            raise RuntimeError(f"{name} must be an integer or a tensor")
    if layout is _strided:
        if isinstance(start, _Tensor) or isinstance(length, _Tensor):
            raise RuntimeError(
                "start and length must be integers for the strided layout NT impl"
            )
        return _of_list(list(tensor.unbind())).narrow(dim, start, length)
    if layout is not _JAGGED:
        raise _unsupported("narrow", layout)
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    return _jagged.narrowed(tensor, start, length)


def masked_select(tensor: Any, mask: Any) -> Any:
    """A nested tensor of those elements of each row for which the mask is True.

    https://docs.pytorch.org/docs/2.13/nested.html

    >>> import torchshim as torch
    >>> x = torch.arange(4).view(2, 2)
    >>> torch.nested.masked_select(x, x > 0)[1]
    tensor([2, 3])
    """
    for what, given in (("tensor, given", tensor), ("mask, given:", mask)):
        if given.layout is not _strided:
            raise RuntimeError(
                f"torch.nested.masked_select requires a strided {what} {given.layout}"
            )
    return _jagged.masked(tensor, mask)


def to_padded_tensor(
    input: Any, padding: float, output_size: Any = None, out: Any = None
) -> Any:
    """A tensor with one row for each tensor of the batch, padded at its end.

    https://docs.pytorch.org/docs/2.13/nested.html

    >>> import torchshim as torch
    >>> parts = [torch.ones(2), torch.ones(1)]
    >>> nested = torch.nested.nested_tensor(parts, layout=torch.jagged)
    >>> torch.nested.to_padded_tensor(nested, 0.0)
    tensor([[1., 1.],
            [1., 0.]])
    """
    return input.to_padded_tensor(padding, output_size)


__getattr__ = _submodules(__name__, "_internal")
