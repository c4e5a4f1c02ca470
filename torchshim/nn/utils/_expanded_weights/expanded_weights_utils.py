"""What functions of expanded weights do first, and what their gradients do last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torchshim
from torchshim._tensor import Tensor
from torchshim.nn.utils._expanded_weights.expanded_weights_impl import ExpandedWeight


def is_batch_first(expanded_args_and_kwargs: Iterable[Any]) -> bool | None:
    """Whether the weights are for inputs whose first dimension is the batch."""
    found = {
        value.batch_first
        for value in expanded_args_and_kwargs
        if isinstance(value, ExpandedWeight)
    }
    if len(found) > 1:
        raise RuntimeError("Got conflicting batch_first arguments in the same layer")
    return next(iter(found), None)


def standard_kwargs(
    kwarg_names: Sequence[str], expanded_args: Sequence[Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Positional arguments and keywords, of a list that has the keywords' values last.

    >>> standard_kwargs(("a",), (1, 2))
    ((1,), {'a': 2})
    """
    first = len(expanded_args) - len(kwarg_names)
    named = zip(kwarg_names, expanded_args[first:], strict=True)
    return expanded_args[:first], dict(named)


def forward_helper(
    func: Any, expanded_args: Sequence[Any], expanded_kwargs: dict[str, Any]
) -> Any:
    """The function of the weights themselves, whose batch has to fit the input."""
    args, kwargs = without_weights(func, expanded_args, expanded_kwargs)
    return func(*args, **kwargs)


def without_weights(
    func: Any, expanded_args: Sequence[Any], expanded_kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call's arguments with the weights themselves; RuntimeError if one is wrong."""
    input, where = expanded_args[0], f"in function {func.__name__}"
    if isinstance(input, ExpandedWeight):
        raise RuntimeError(
            "Expanded Weights do not support inputs that are also ExpandedWeights. "
            f"Input must be a Tensor, got {type(input).__name__} {where}"
        )
    if not isinstance(input, Tensor):
        raise RuntimeError(
            "Expanded Weights requires a Tensor as the first input to get the batch "
            f"dimension, got {type(input).__name__} {where}"
        )
    if not input.dim():
        raise RuntimeError(
            "Expanded Weights requires a batch dimension but got an input of size 0 "
            f"{where}"
        )
    if input.shape[0] == 0:
        raise RuntimeError(
            "0 is not a valid batch size for Expanded Weights but got input tensor of "
            f"{input} {where}"
        )
    for value in (*expanded_args, *expanded_kwargs.values()):
        if not isinstance(value, ExpandedWeight):
            continue
        have = input.shape[0 if value.batch_first else 1]
        fits = have <= value.batch_size if value.allow_smaller_batches else False
        if not fits and have != value.batch_size:
            raise RuntimeError(
                "Expected ExpandedWeights to have batch size matching input but got "
                f"input batch size of {have} with ExpandedWeight of batch size "
                f"{value.batch_size}"
            )
    kwargs = {name: _own(value) for name, value in expanded_kwargs.items()}
    return tuple(map(_own, expanded_args)), kwargs


def _own(value: Any) -> Any:
    return value.orig_weight if isinstance(value, ExpandedWeight) else value


def maybe_scale_by_batch_size(
    grad_sample: Tensor, expanded_weight: ExpandedWeight
) -> Tensor:
    """Gradients of a mean over the batch as those of the examples' own losses."""
    if expanded_weight.loss_reduction == "mean":
        return grad_sample * expanded_weight.batch_size
    return grad_sample


def set_grad_sample_if_exists(
    maybe_expanded_weight: Any, per_sample_grad_fn: Callable[[Tensor], Tensor]
) -> None:
    """Adds to `grad_sample` of what an expanded weight is made of, if it is one."""
    own = unpack_expanded_weight_or_tensor(maybe_expanded_weight)
    if not isinstance(maybe_expanded_weight, ExpandedWeight):
        return
    found = maybe_scale_by_batch_size(per_sample_grad_fn(own), maybe_expanded_weight)
    missing = maybe_expanded_weight.batch_size - found.shape[0]
    if missing > 0:  # of a smaller batch
        found = torchshim.cat([found, found.new_zeros((missing, *found.shape[1:]))])
    before = getattr(own, "grad_sample", None)
    own.grad_sample = found if before is None else before + found


def unpack_expanded_weight_or_tensor(
    maybe_expanded_weight: Any, func: Callable[[Any], Any] = lambda x: x
) -> Any:
    """A function of an expanded weight's own, or of a tensor; None of anything else.

    RuntimeError for a tensor that requires grad.
    """
    if isinstance(maybe_expanded_weight, ExpandedWeight):
        return func(maybe_expanded_weight.orig_weight)
    if not isinstance(maybe_expanded_weight, Tensor):
        return None
    if maybe_expanded_weight.requires_grad:
        raise RuntimeError(
            "ExpandedWeights currently does not support a mixture of ExpandedWeight "
            "parameters and normal Parameters. Please file and issue with "
            "pytorch/pytorch"
        )
    return func(maybe_expanded_weight)


def sum_over_all_but_batch_and_last_n(tensor: Tensor, n_dims: int) -> Tensor:
    """Sums over the dimensions between the first and the last `n_dims`.

    >>> import torchshim as torch
    >>> sum_over_all_but_batch_and_last_n(torch.ones(2, 3, 4), 1).shape
    torch.Size([2, 4])
    """
    if tensor.dim() == n_dims + 1:
        return tensor
    return tensor.sum(list(range(1, tensor.dim() - n_dims)))
