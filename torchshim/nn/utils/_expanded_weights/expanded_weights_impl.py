"""The class of weights that keep a gradient for each example of a batch.

PyTorch has a formula for each of the layers that know such weights; here the layer is
mapped over the examples (`vmap`), each with its own copy of the weights, whose
gradients are those of the examples.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torchshim
from torchshim._tensor import Tensor
from torchshim.nn import functional as F


class ExpandedWeight(Tensor):
    """A weight for a batch of examples: `orig_weight.grad_sample` gets a gradient each.

    Of the functions that layers are made of eight take such weights.

    >>> import torchshim as torch
    >>> weight = torch.nn.Parameter(torch.ones(1, 1))
    >>> x = torch.tensor([[2.0], [3.0]])
    >>> F.linear(x, ExpandedWeight(weight, 2, "sum")).sum().backward()
    >>> weight.grad_sample.flatten(), weight.grad
    (tensor([2., 3.]), None)
    """

    # What is called for a function, with its arguments.
    handled_functions: dict[Any, Callable[..., Any]] = {}  # noqa: RUF012

    orig_weight: Tensor
    batch_size: int
    batch_first: bool
    allow_smaller_batches: bool
    loss_reduction: str

    def __new__(cls, orig_weight: Any, batch_size: int, loss_reduction: str) -> Any:
        if not isinstance(orig_weight, Tensor):
            raise RuntimeError(
                "Can only make Expanded Weights of Tensors, got "
                f"{type(orig_weight).__name__}"
            )
        if not orig_weight.requires_grad:
            raise RuntimeError(
                "Can only build ExpandedWeights objects of tensors that requires_grad"
            )
        return Tensor._make_subclass(cls, orig_weight, True)

    def __init__(self, orig_weight: Any, batch_size: int, loss_reduction: str) -> None:
        self.orig_weight = orig_weight
        self.batch_size = batch_size
        self.batch_first = True
        self.allow_smaller_batches = False
        self.loss_reduction = loss_reduction

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        handler = cls.handled_functions.get(func)
        if handler is None:
            raise RuntimeError(
                "Expanded Weights encountered but cannot handle function "
                f"{func.__name__}"
            )
        return handler(func, args, kwargs or {})

    @property
    def dtype(self) -> Any:
        return self.orig_weight.dtype

    @property
    def data(self) -> Any:
        return self.orig_weight.data

    @property
    def shape(self) -> Any:
        return self.orig_weight.shape

    @property
    def device(self) -> Any:
        return self.orig_weight.device

    @property
    def is_cuda(self) -> bool:
        return self.orig_weight.is_cuda

    def data_ptr(self) -> int:
        return self.orig_weight.data_ptr()

    def get_device(self) -> int:
        return self.orig_weight.get_device()

    def set_allow_smaller_batches(self, is_allow_smaller_batches: bool) -> None:
        """Whether inputs may have fewer examples than the weight is for."""
        self.allow_smaller_batches = is_allow_smaller_batches

    def set_batch_first(self, is_batch_first: bool = True) -> None:
        """Whether the first dimension of inputs is the batch, not the second."""
        self.batch_first = is_batch_first


def implements_per_sample_grads(torch_function: Any) -> Callable[[Any], Any]:
    """Has what it decorates called for a function of such weights."""

    def add(handler: Any) -> Any:
        ExpandedWeight.handled_functions[torch_function] = handler
        return handler

    return add


def _mapped(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The function of each example alone, with a copy of the weights."""
    from torchshim.nn.utils._expanded_weights import expanded_weights_utils as utils

    whole, named = utils.without_weights(func, args, kwargs)
    input, *rest = whole
    at = 0 if utils.is_batch_first((*args, *kwargs.values())) in (None, True) else 1
    count = input.shape[at]
    copies: dict[Any, Tensor] = {}
    for key, value in (*enumerate(args), *kwargs.items()):
        if isinstance(value, ExpandedWeight):
            copies[key] = _copies(value, count, utils.set_grad_sample_if_exists)

    def one(example: Tensor, own: dict[Any, Tensor]) -> Tensor:
        positional = [own.get(i, value) for i, value in enumerate(rest, 1)]
        options = {name: own.get(name, value) for name, value in named.items()}
        made = func(example.unsqueeze(at), *positional, **options)
        return made.squeeze(at)

    try:
        return torchshim.vmap(one, (at, 0), at)(input, copies)
    except (RuntimeError, TypeError):
        func(*whole, **named)  # its error tells of the whole batch
        raise


def _copies(weight: ExpandedWeight, count: int, keep: Callable[..., None]) -> Tensor:
    """A copy for each example, whose gradients become `grad_sample`."""
    own = weight.orig_weight.detach()
    copies = own.expand(count, *own.shape).requires_grad_()
    copies.register_hook(lambda grad: keep(weight, lambda _: grad))
    return copies


@implements_per_sample_grads(F.linear)
def _linear(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if args[0].dim() < 2:
        raise RuntimeError(
            "Input does not have a batch dimension. Expanded Weights expected input of "
            f"at least rank 2, got of rank {args[0].dim()}"
        )
    return _mapped(func, args, kwargs)


@implements_per_sample_grads(F.embedding)
def _embedding(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    # PyTorch's formula has no padding.
    return _mapped(func, args, {**kwargs, "padding_idx": None})


@implements_per_sample_grads(F.instance_norm)
def _instance_norm(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = inspect.signature(F.instance_norm).bind(*args, **kwargs)
    given.apply_defaults()
    named = dict(given.arguments)
    input = named.pop("input")
    if named["use_input_stats"] and named["running_mean"] is not None:
        # What a module keeps of the batch is of no example.
        func(input.detach(), **{**named, "weight": None, "bias": None})
        named |= {"running_mean": None, "running_var": None}
    return _mapped(func, (input,), named)


for _function in (F.conv1d, F.conv2d, F.conv3d, F.layer_norm, F.group_norm):
    implements_per_sample_grads(_function)(_mapped)
