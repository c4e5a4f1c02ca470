"""Complex numbers: their parts, and views that conjugate or negate.

Such a view has PyTorch's conjugate or negative bit. It is a fact of the view's path
(`_core.storage.has_bit`), so that a copy has none.
"""

from __future__ import annotations

from typing import Any

from torchshim._core.storage import has_bit
from torchshim._derived import fns, public
from torchshim._functions._arguments import tensor_argument
from torchshim._tensor import Tensor

_UNRESOLVED = (
    "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the "
    "conjugate tensor so you can view it as real, use self.resolve_conj(); however, be "
    "warned that the resulting tensor will NOT alias the original."
)


# Parts --------------------------------------------------------------------------------


@public
def view_as_real(input: Tensor) -> Tensor:
    """The same memory as pairs of real numbers, a new last dimension.

    RuntimeError if `input` is real, or conjugated.
    https://docs.pytorch.org/docs/2.13/generated/torch.view_as_real.html

    >>> import torchshim as torch
    >>> torch.view_as_real(torch.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    tensor_argument("view_as_real", "input", 1, input)
    if has_bit(input, "conj"):
        raise RuntimeError(_UNRESOLVED)
    return fns.view_as_real(input)


@public
def real(input: Tensor) -> Tensor:
    """The real parts, in the memory of `input`; `input` itself where it is real.

    https://docs.pytorch.org/docs/2.13/generated/torch.real.html

    >>> import torchshim as torch
    >>> torch.real(torch.tensor([1 + 2j]))
    tensor([1.])
    """
    tensor_argument("real", "input", 1, input)
    if not input._tmeta.dtype.is_complex:
        return input
    if has_bit(input, "conj"):
        input = fns._conj(input)
    return fns.view_as_real(input).select(-1, 0)


@public
def imag(input: Tensor) -> Tensor:
    """The imaginary parts, in the memory of `input`. RuntimeError if it is real.

    https://docs.pytorch.org/docs/2.13/generated/torch.imag.html

    >>> import torchshim as torch
    >>> torch.imag(torch.tensor([1 + 2j]))
    tensor([2.])
    """
    tensor_argument("imag", "input", 1, input)
    if not input._tmeta.dtype.is_complex:
        raise RuntimeError(
            "imag is not implemented for tensors with non-complex dtypes."
        )
    if has_bit(input, "conj"):
        pairs = fns._neg_view(fns.view_as_real(fns._conj(input)))
    else:
        pairs = fns.view_as_real(input)
    return pairs.select(-1, 1)


def _set_real(self: Tensor, value: Any) -> None:
    real(self).copy_(value)


def _set_imag(self: Tensor, value: Any) -> None:
    imag(self).copy_(value)


Tensor.real = property(real, _set_real)
Tensor.imag = property(imag, _set_imag)


# Conjugates ---------------------------------------------------------------------------


@public(method=True)
def conj(input: Tensor) -> Tensor:
    """The conjugates, as a view of `input`; `input` itself where it is real.

    https://docs.pytorch.org/docs/2.13/generated/torch.conj.html

    >>> import torchshim as torch
    >>> torch.conj(torch.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    tensor_argument("conj", "input", 1, input)
    return fns._conj(input) if input._tmeta.dtype.is_complex else input


@public(method=True)
def conj_physical(input: Tensor, *, out: Any = None) -> Tensor:
    """The conjugates in memory of their own; `input` itself where it is real.

    https://docs.pytorch.org/docs/2.13/generated/torch.conj_physical.html

    >>> import torchshim as torch
    >>> torch.conj_physical(torch.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    tensor_argument("conj_physical", "input", 1, input)
    if out is None and not input._tmeta.dtype.is_complex:
        return input
    return fns.conj_physical(input, out=out)


# Bits ---------------------------------------------------------------------------------


@public(method=True)
def is_conj(input: Tensor) -> bool:
    """Whether `input` is a view that shows its memory conjugated.

    https://docs.pytorch.org/docs/2.13/generated/torch.is_conj.html

    >>> import torchshim as torch
    >>> torch.is_conj(torch.tensor([1j]).conj())
    True
    """
    return has_bit(tensor_argument("is_conj", "input", 1, input), "conj")


@public(method=True)
def is_neg(input: Tensor) -> bool:
    """Whether `input` is a view that shows its memory negated.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.is_neg.html

    >>> import torchshim as torch
    >>> torch.is_neg(torch.tensor([1j]).conj().imag)
    True
    """
    return has_bit(tensor_argument("is_neg", "input", 1, input), "neg")


@public(method=True)
def resolve_conj(input: Tensor) -> Tensor:
    """A copy of a tensor that is conjugated by its view; any other itself.

    https://docs.pytorch.org/docs/2.13/generated/torch.resolve_conj.html

    >>> import torchshim as torch
    >>> torch.resolve_conj(torch.tensor([1j]).conj()).is_conj()
    False
    """
    tensor_argument("resolve_conj", "input", 1, input)
    return fns.clone(input) if has_bit(input, "conj") else input


@public(method=True)
def resolve_neg(input: Tensor) -> Tensor:
    """A copy of a tensor that is negated by its view; any other itself.

    https://docs.pytorch.org/docs/2.13/generated/torch.resolve_neg.html

    >>> import torchshim as torch
    >>> torch.resolve_neg(torch.tensor([1j]).conj().imag).is_neg()
    False
    """
    tensor_argument("resolve_neg", "input", 1, input)
    return fns.clone(input) if has_bit(input, "neg") else input


@public(method=True)
def _is_zerotensor(input: Tensor) -> bool:
    """Whether `input` has no memory since it is all zero: never, here."""
    tensor_argument("_is_zerotensor", "input", 1, input)
    return False
