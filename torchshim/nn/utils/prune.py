"""Pruning: parameters of which some elements are kept at zero.

A pruned parameter `w` becomes the parameter `w_orig` and the buffer `w_mask`; `w` is
their product, made anew before each forward pass.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import torchshim
from torchshim.nn.utils.convert_parameters import parameters_to_vector


class BasePruningMethod(ABC):
    """What decides which elements go; the hook that takes them away.

    A subclass defines `compute_mask` and `PRUNING_TYPE`: "unstructured", "structured"
    (with `dim`) or "global". Follows ``torch.nn.utils.prune.BasePruningMethod``.
    """

    _tensor_name: Any
    PRUNING_TYPE: str

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask for a tensor, on top of an earlier one."""

    def apply_mask(self, module: Any) -> Any:
        """The product of the original and the mask."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask = getattr(module, self._tensor_name + "_mask")
        orig = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=orig.dtype) * orig

    @classmethod
    def apply(
        cls,
        module: Any,
        name: str,
        *args: Any,
        importance_scores: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Prunes a parameter, further if it was pruned before; gives the method."""
        method = cls._combined(module, name, *args, **kwargs)
        further = isinstance(method, PruningContainer)
        orig = getattr(module, name)
        if importance_scores is None:
            importance_scores = orig
        elif importance_scores.shape != orig.shape:
            raise AssertionError(
                "importance_scores should have the same shape as parameter "
                f"{name} of {module}, got {importance_scores.shape} vs {orig.shape}"
            )
        if further:
            default_mask = (
                getattr(module, name + "_mask")
                .detach()
                .clone(memory_format=torchshim.contiguous_format)
            )
        else:
            module.register_parameter(name + "_orig", orig)
            del module._parameters[name]
            default_mask = torchshim.ones_like(orig)
        try:
            mask = method.compute_mask(importance_scores, default_mask=default_mask)
            module.register_buffer(name + "_mask", mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if not further:
                module.register_parameter(name, getattr(module, name + "_orig"))
                del module._parameters[name + "_orig"]
            raise
        return method

    @classmethod
    def _combined(cls, module: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        """The new method, in one container with those that pruned before."""
        old = [
            (key, hook)
            for key, hook in module._forward_pre_hooks.items()
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
        ]
        if len(old) > 1:
            raise AssertionError(
                f"Avoid adding multiple pruning hooks to the same tensor {name} of "
                f"module {module}. Use a PruningContainer."
            )
        for key, _ in old:
            del module._forward_pre_hooks[key]
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        if not old:
            return method
        before = old[0][1]
        if not isinstance(before, PruningContainer):
            before = PruningContainer(before)
        before.add_pruning_method(method)
        return before

    def prune(
        self, t: Any, default_mask: Any = None, importance_scores: Any = None
    ) -> Any:
        """A tensor with its pruned elements at zero."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(
                "importance_scores should have the same shape as tensor t, got "
                f"{importance_scores.shape} vs {t.shape}"
            )
        if default_mask is None:
            default_mask = torchshim.ones_like(t)
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module: Any) -> None:
        """Makes the pruned tensor the parameter."""
        if self._tensor_name is None:
            raise AssertionError(
                f"Module {module} has to be pruned before pruning can be removed"
            )
        name = self._tensor_name
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        orig = module._parameters[name + "_orig"]
        orig.data = weight.data
        del module._parameters[name + "_orig"]
        del module._buffers[name + "_mask"]
        setattr(module, name, orig)


class PruningContainer(BasePruningMethod):
    """Several methods that prune one parameter, one after the other.

    Follows ``torch.nn.utils.prune.PruningContainer``.
    """

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Adds a method; it has to prune the same parameter."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found "
                f"'{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask of the last method, within what the ones before left."""
        method, mask = self._pruning_methods[-1], default_mask
        ndim = t.dim()
        piece: Any = (slice(None),) * ndim
        if method.PRUNING_TYPE == "unstructured":
            piece = mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(
                    'Pruning methods of PRUNING_TYPE "structured" need to have the '
                    "attribute `dim` defined."
                )
            dim = method.dim + ndim if method.dim < 0 else method.dim
            if dim < 0:
                raise IndexError(
                    f"Index is out of bounds for tensor with dimensions {ndim}"
                )
            if dim >= ndim:
                raise IndexError("list assignment index out of range")
            others = tuple(d for d in range(ndim) if d != dim)
            kept = mask.sum(dim=others) != 0
            piece = tuple(kept if d == dim else slice(None) for d in range(ndim))
        elif method.PRUNING_TYPE != "global":
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        new = mask.to(dtype=t.dtype)
        partial = method.compute_mask(t[piece], default_mask=mask[piece])
        new[piece] = partial.to(dtype=new.dtype)
        return new


class Identity(BasePruningMethod):
    """Prunes nothing, but makes the mask. Follows ``torch.nn.utils.prune.Identity``."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask

    @classmethod
    def apply(cls, module: Any, name: str) -> Any:
        return super().apply(module, name)


class RandomUnstructured(BasePruningMethod):
    """Prunes elements at random: `amount` of them, or that fraction."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        count = _to_prune(self.amount, t.nelement())
        mask = default_mask.clone(memory_format=torchshim.contiguous_format)
        if count != 0:
            chosen = torchshim.rand_like(t).view(-1).topk(count)
            mask.view(-1)[chosen.indices] = 0
        return mask

    @classmethod
    def apply(cls, module: Any, name: str, amount: float) -> Any:
        return super().apply(module, name, amount=amount)


class L1Unstructured(BasePruningMethod):
    """Prunes the elements that are smallest: `amount` of them, or that fraction."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        count = _to_prune(self.amount, t.nelement())
        mask = default_mask.clone(memory_format=torchshim.contiguous_format)
        if count != 0:
            smallest = t.abs().view(-1).topk(count, largest=False)
            mask.view(-1)[smallest.indices] = 0
        return mask

    @classmethod
    def apply(
        cls, module: Any, name: str, amount: float, importance_scores: Any = None
    ) -> Any:
        return super().apply(
            module, name, amount=amount, importance_scores=importance_scores
        )


class RandomStructured(BasePruningMethod):
    """Prunes whole channels along `dim` at random."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.dim = dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = _to_prune(self.amount, size)
        if count == 0:
            return default_mask
        drawn = torchshim.rand(size)
        kept = drawn > drawn.kthvalue(count).values
        mask = torchshim.zeros_like(t)
        mask[_channels(t, self.dim, kept)] = 1
        mask *= default_mask.to(dtype=mask.dtype)
        return mask

    @classmethod
    def apply(cls, module: Any, name: str, amount: float, dim: int = -1) -> Any:
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(BasePruningMethod):
    """Prunes the channels along `dim` whose `n`-norms are smallest."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = _to_prune(self.amount, size)
        norm = _compute_norm(t, self.n, self.dim)
        kept = norm.topk(size - count, largest=True)
        if count == 0:
            return default_mask
        mask = torchshim.zeros_like(t)
        mask[_channels(t, self.dim, kept.indices)] = 1
        mask *= default_mask.to(dtype=mask.dtype)
        return mask

    @classmethod
    def apply(
        cls,
        module: Any,
        name: str,
        amount: float,
        n: Any,
        dim: int,
        importance_scores: Any = None,
    ) -> Any:
        return super().apply(
            module,
            name,
            amount=amount,
            n=n,
            dim=dim,
            importance_scores=importance_scores,
        )


class CustomFromMask(BasePruningMethod):
    """Prunes by a mask that is given."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape "
                f"{self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Any, name: str, mask: Any) -> Any:
        return super().apply(module, name, mask=mask)


def _channels(t: Any, dim: int, chosen: Any) -> tuple[Any, ...]:
    """The index of these channels of a tensor."""
    places: list[Any] = [slice(None)] * t.dim()
    places[dim] = chosen
    return tuple(places)


def identity(module: Any, name: str) -> Any:
    """Makes mask and original of a parameter and prunes nothing.

    Follows ``torch.nn.utils.prune.identity``.
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: float) -> Any:
    """Prunes elements at random. Follows ``torch.nn.utils.prune``."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Any, name: str, amount: float, importance_scores: Any = None
) -> Any:
    """Prunes the smallest elements. Follows ``torch.nn.utils.prune``.

    >>> import torchshim as torch
    >>> layer = torch.nn.Linear(4, 1)
    >>> int(l1_unstructured(layer, "weight", amount=0.25).weight_mask.sum())
    3
    """
    L1Unstructured.apply(
        module, name, amount=amount, importance_scores=importance_scores
    )
    return module


def random_structured(module: Any, name: str, amount: float, dim: int) -> Any:
    """Prunes channels at random. Follows ``torch.nn.utils.prune``."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Any,
    name: str,
    amount: float,
    n: Any,
    dim: int,
    importance_scores: Any = None,
) -> Any:
    """Prunes the channels of the smallest norms. Follows ``torch.nn.utils.prune``."""
    LnStructured.apply(
        module, name, amount, n, dim, importance_scores=importance_scores
    )
    return module


def global_unstructured(
    parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prunes the elements of several parameters as if they were one.

    `parameters`: pairs (module, name). Follows
    ``torch.nn.utils.prune.global_unstructured``.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs = list(parameters)
    values = [scores.get((m, name), getattr(m, name)) for m, name in pairs]
    masks = [
        getattr(m, name + "_mask", torchshim.ones_like(getattr(m, name)))
        for m, name in pairs
    ]
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. '
            f"Found method {pruning_method} of type {method.PRUNING_TYPE}"
        )
    container.add_pruning_method(method)
    vectors = parameters_to_vector(values), parameters_to_vector(masks)
    mask = container.compute_mask(*vectors)
    start = 0
    for module, name in pairs:
        param = getattr(module, name)
        end = start + param.numel()
        custom_from_mask(module, name, mask=mask[start:end].view_as(param))
        start = end


def custom_from_mask(module: Any, name: str, mask: Any) -> Any:
    """Prunes by a mask. Follows ``torch.nn.utils.prune.custom_from_mask``."""
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Any, name: str) -> Any:
    """Makes what is left of a pruned parameter the parameter.

    ValueError where it was not pruned. Follows ``torch.nn.utils.prune.remove``.
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(
        f"Parameter '{name}' of module {module} has to be pruned before pruning can be "
        "removed"
    )


def is_pruned(module: Any) -> bool:
    """Whether anything within a module is pruned.

    Follows ``torch.nn.utils.prune.is_pruned``.
    """
    return any(
        isinstance(hook, BasePruningMethod)
        for each in module.modules()
        for hook in each._forward_pre_hooks.values()
    )


def _validate_pruning_amount_init(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    if amount < 0 or (not whole and float(amount) > 1.0):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a "
            "non-negative integer"
        )


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    if isinstance(amount, numbers.Integral) and amount > tensor_size:  # type: ignore[operator]
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to "
            f"prune={tensor_size}"
        )


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> Any:
    return (
        amount if isinstance(amount, numbers.Integral) else round(amount * tensor_size)
    )


def _to_prune(amount: Any, size: int) -> Any:
    """The number of elements, or channels, that an amount means."""
    _validate_pruning_amount(amount, size)
    return _compute_nparams_toprune(amount, size)


def _compute_norm(t: Any, n: Any, dim: int) -> Any:
    """The norm of each channel."""
    others = tuple(d for d in range(t.dim()) if d != dim % t.dim())
    return torchshim.norm(t, p=n, dim=others)


def _validate_structured_pruning(t: Any) -> None:
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found "
            f"tensor of shape {t.shape} with {t.dim()} dims"
        )


def _validate_pruning_dim(t: Any, dim: int) -> None:
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")
