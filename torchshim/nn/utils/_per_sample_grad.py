"""The gradients of a batch, for each of its examples."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torchshim
from torchshim import _pytree
from torchshim._tensor import Tensor
from torchshim.func import functional_call
from torchshim.nn import Module
from torchshim.nn.modules.batchnorm import _BatchNorm

__all__ = ["call_for_per_sample_grads"]


def call_for_per_sample_grads(
    module: Module,
    *,
    batch_size: int | None = None,
    loss_reduction: str = "sum",
    batch_first: bool = True,
) -> Callable[..., Any]:
    """The module as a function whose backward pass sets `grad_sample` of parameters.

    Each example goes through the module alone, as a batch of one, by `vmap`.

    >>> import torchshim as torch
    >>> net = torch.nn.Linear(1, 1, bias=False)
    >>> y = call_for_per_sample_grads(net)(torch.tensor([[2.0], [3.0]]))
    >>> y.sum().backward()
    >>> net.weight.grad_sample.flatten(), net.weight.grad
    (tensor([2., 3.]), None)
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(
            f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}"
        )
    if not isinstance(module, Module):
        raise RuntimeError(
            f"Module passed must be nn.Module, got {type(module).__name__}"
        )
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(
            "Batch size passed must be None or an integer, got "
            f"{type(batch_size).__name__}"
        )
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for weight in module.parameters():
        if getattr(weight, "grad_sample", None) is not None:
            raise RuntimeError(
                "Current Expanded Weights accumulates the gradients, which will be "
                "incorrect for multiple calls without clearing gradients. Please clear "
                f"out the grad_sample parameter of {weight} or post an issue to "
                "pytorch/pytorch to prioritize correct behavior"
            )
    dim = 0 if batch_first else 1

    @functools.wraps(module.forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        _check_alone(module)
        leaves, spec = _pytree.tree_flatten((args, kwargs))
        count = batch_size or _batch_size(leaves, dim)
        sizes = [x.shape[dim] for x in leaves if isinstance(x, Tensor)]
        if sizes and count not in sizes:
            raise RuntimeError(
                "Expected ExpandedWeights to have batch size matching input but got "
                f"input batch size of {sizes[0]} with ExpandedWeight of batch size "
                f"{count}"
            )
        copies = {
            name: _copies(param, count, loss_reduction == "mean")
            for name, param in module.named_parameters()
            if param.requires_grad
        }
        in_dims = [
            dim if isinstance(x, Tensor) and x.shape[dim] == count else None
            for x in leaves
        ]

        def one(params: dict[str, Tensor], *each: Any) -> Any:
            examples = [
                x if at is None else x.unsqueeze(dim)
                for x, at in zip(each, in_dims, strict=True)
            ]
            given, named = spec.unflatten(examples)
            made = functional_call(module, params, given, named)
            return _pytree.tree_map(lambda y: y.squeeze(dim), made)

        mapped = torchshim.vmap(one, (0, *in_dims), dim, randomness="different")
        return mapped(copies, *leaves)

    return call


def _check_alone(module: Module) -> None:
    """Raises for layers that make of one example what depends on the others."""
    for layer in module.modules():
        if not isinstance(layer, _BatchNorm):
            continue
        weights = layer.parameters(recurse=False)
        of_batch = layer.training or layer.running_mean is None
        if of_batch or any(weight.requires_grad for weight in weights):
            raise RuntimeError(
                "Expanded Weights encountered but cannot handle function batch_norm"
            )


def _batch_size(leaves: list[Any], dim: int) -> int:
    found: int | None = None
    for x in leaves:
        if not isinstance(x, Tensor):
            continue
        own = x.shape[dim]
        if found is not None and own != found:
            raise RuntimeError(
                "When computing batch size, found at least one input with batch size "
                f"{found} and one with batch size {own}. Please specify it explicitly "
                "using the batch size kwarg in call_for_per_sample_grads"
            )
        found = own
    if found is None:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs. They may not be "
            "pytree-able and so ExpandedWeights cannot compute the batch size from the "
            "inputs. Please specify it explicitly"
        )
    return found


def _copies(param: Any, count: int, mean: bool) -> Tensor:
    """A parameter for each example, whose gradients become its `grad_sample`."""
    copies = param.detach().expand(count, *param.shape).requires_grad_()

    def keep(grad: Tensor) -> None:
        param.grad_sample = grad * count if mean else grad

    copies.register_hook(keep)
    return copies
