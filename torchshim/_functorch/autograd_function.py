"""Helpers of custom functions under transforms, by their place in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from torchshim._functions.vmap import vmap
from torchshim._tensor import Tensor
from torchshim.autograd._transformed import VmapInfo

__all__ = [
    "CtxWithSavedTensors",
    "VmapInfo",
    "WrappedCtx",
    "reductify",
    "reductify_leaf",
]


class WrappedCtx:
    """A context's stand-in: what it does not have itself is the context's."""

    _pt_reserved_attrs: ClassVar[tuple[str, ...]] = (
        "_pt_reserved_attrs",
        "_pt_inner_ctx",
    )

    def __init__(self, ctx: Any) -> None:
        reserved = self._pt_reserved_attrs
        if not isinstance(ctx, WrappedCtx) and any(hasattr(ctx, n) for n in reserved):
            raise RuntimeError(
                f"PyTorch reserves the {reserved} field on ctx. Please name your "
                "fields on ctx something else to avoid name collision."
            )
        self._pt_inner_ctx = ctx

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pt_inner_ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._pt_reserved_attrs:
            self.__dict__[name] = value
        else:
            setattr(self._pt_inner_ctx, name, value)


class CtxWithSavedTensors(WrappedCtx):
    """A context with other saved tensors."""

    _pt_reserved_attrs = ("_pt_new_saved_tensors", *WrappedCtx._pt_reserved_attrs)

    def __init__(self, ctx: Any, new_saved_tensors: Sequence[Any]) -> None:
        super().__init__(ctx)
        self._pt_new_saved_tensors = new_saved_tensors

    @property
    def saved_tensors(self) -> Sequence[Any]:
        """Those given."""
        return self._pt_new_saved_tensors


def reductify(
    grad_input: Any,
    grad_input_bdim: Any,
    input_bdim: Any,
    batch_size: int,
    target_shape_without_bdim_to_reduce_to: Any = None,
) -> tuple[Any, ...]:
    """`reductify_leaf` of each gradient."""
    grads, grad_dims, dims = (
        each if isinstance(each, tuple) else (each,)
        for each in (grad_input, grad_input_bdim, input_bdim)
    )
    shapes = target_shape_without_bdim_to_reduce_to
    if shapes is None:
        shapes = (None,) * len(grads)
    each = zip(grads, grad_dims, dims, shapes, strict=False)
    return tuple(reductify_leaf(g, gd, d, batch_size, s) for g, gd, d, s in each)


def reductify_leaf(
    grad_input: Any,
    grad_input_bdim: int | None,
    input_bdim: int | None,
    batch_size: int,
    target_shape_without_bdim_to_reduce_to: Any = None,
) -> Tensor | None:
    """A gradient with its examples where the input has them, else their sum."""
    if grad_input is None or (grad_input_bdim is None and input_bdim is None):
        return grad_input
    if input_bdim is None:
        return grad_input.sum(grad_input_bdim)
    if grad_input_bdim is None:
        grad_input = grad_input.unsqueeze(input_bdim)
        shape = list(grad_input.shape)
        shape[input_bdim] = batch_size
        grad_input, grad_input_bdim = grad_input.expand(shape), input_bdim
    shape = target_shape_without_bdim_to_reduce_to
    if shape is not None:
        dims = (grad_input_bdim, None)
        fit = vmap(lambda grad, size: grad.sum_to_size(size), dims, input_bdim)
        return fit(grad_input, shape)
    if input_bdim != grad_input_bdim:
        grad_input = grad_input.movedim(grad_input_bdim, input_bdim)
    return grad_input
