"""Gradients by the names that PyTorch's dispatcher has for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim._core.record import local
from torchshim._derived import public
from torchshim._functions.backward import grad
from torchshim._functions.nn_layers import convolution
from torchshim._tensor import Tensor


@public(namespaces=("ops.aten",))
def convolution_backward(
    grad_output: Tensor,
    input: Any,
    weight: Any,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """The gradients of a convolution for its input, weight and bias, or None.

    >>> import torchshim as torch
    >>> x, w = torch.ones(1, 1, 3), torch.ones(1, 1, 2)
    >>> g, lists = torch.ones(1, 1, 2), ([1], [0], [1], False, [0], 1)
    >>> backward = torch.ops.aten.convolution_backward
    >>> backward(g, x, w, [1], *lists, [True, False, True])
    (tensor([[[1., 2., 1.]]]), None, tensor([2.]))
    """
    if groups <= 0:
        raise RuntimeError(
            f"expected groups to be greater than 0, but got groups={groups}"
        )
    rec = local.rec
    before = rec.grad
    tracked = any(x.requires_grad for x in (grad_output, input, weight))
    # What has a history keeps it for gradients of these gradients.
    given = [x if x.requires_grad else x.detach() for x in (input, weight)]
    given += [weight.new_zeros(bias_sizes or (grad_output.size(1),))] * output_mask[2]
    wanted = [x for x, asked in zip(given, output_mask, strict=False) if asked]
    rec.set_grad(True)
    try:
        for x in wanted:
            if not x.requires_grad:
                x.requires_grad_()
        bias = given[2] if output_mask[2] else None
        lists = stride, padding, dilation, transposed, output_padding, groups
        output = convolution(given[0], given[1], bias, *lists)
        gradients = (
            grad(output, wanted, grad_output, create_graph=tracked and before)
            if wanted
            else ()
        )
    finally:
        rec.set_grad(before)
    found = iter(gradients)
    return tuple(next(found) if asked else None for asked in output_mask)


@public(namespaces=("ops.aten",))
def _convolution_double_backward(
    ggI: Tensor | None,
    ggW: Tensor | None,
    ggb: Tensor | None,
    gO: Tensor,
    weight: Tensor,
    self: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """The gradients of `convolution_backward` for what it was given, or None.

    `ggI`, `ggW` and `ggb` are those for its results. What follows from them is given
    whatever `output_mask` says, as by PyTorch.

    >>> import torchshim as torch
    >>> x, w = torch.ones(1, 1, 3), torch.ones(1, 1, 2)
    >>> g, lists = torch.ones(1, 1, 2), ([1], [0], [1], False, [0], 1)
    >>> twice = torch.ops.aten._convolution_double_backward
    >>> twice(x, None, None, g, w, x, *lists, [True, True, True])
    (tensor([[[2., 2.]]]), None, tensor([[[2., 2.]]]))
    """
    lists = stride, padding, dilation, transposed, output_padding, groups
    # A convolution is linear in its input and in its weight.
    parts = []
    if ggI is not None:
        parts.append(convolution(ggI, weight, None, *lists))
    if ggW is not None:
        parts.append(convolution(self, ggW, None, *lists))
    if ggb is not None:
        parts.append(ggb.view(1, -1, *(1,) * (gO.dim() - 2)).expand_as(gO))
    of_output = sum(parts[1:], parts[0]) if parts else None
    of_input = of_weight = None
    if ggW is not None:
        only = True, False, False
        of_input = convolution_backward(gO, self, ggW, None, *lists, only)[0]
    if ggI is not None:
        only = False, True, False
        of_weight = convolution_backward(gO, ggI, weight, None, *lists, only)[1]
    return of_output, of_input, of_weight
