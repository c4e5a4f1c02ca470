"""Parameters that are computed from others, each time they are asked for."""

from __future__ import annotations

import copyreg
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import torchshim
from torchshim._tensor import Tensor
from torchshim.nn.modules.container import ModuleDict, ModuleList
from torchshim.nn.modules.module import Module
from torchshim.nn.parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

# Values computed within `cached`, by module and name, and how deep in it we are.
_cache: dict[tuple[int, str], Any] = {}
_cache_enabled = 0


@contextmanager
def cached() -> Iterator[None]:
    """Within it every parametrized tensor is computed once only.

    Follows ``torch.nn.utils.parametrize.cached``.
    """
    global _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache.clear()


def _register(module: Module, name: str, tensor: Any) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _same(
    what: str, flag: str, old: tuple[str, Any], new: tuple[str, Any], *names: str
) -> None:
    """Raises where a parametrization changes what it must not change."""
    for name in names:
        before, after = getattr(old[1], name), getattr(new[1], name)
        if before != after:
            raise ValueError(
                f"{what.format(name)}{flag}\n{old[0].format(name)}: {before}\n"
                f"{new[0].format(name)}: {after}"
            )


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in order, and what they start from.

    `original` is that, or `original0`, `original1`, … where the last `right_inverse`
    gives several tensors. Follows
    ``torch.nn.utils.parametrize.ParametrizationList``.
    """

    original: Any
    unsafe: bool

    def __init__(
        self, modules: Sequence[Module], original: Any, unsafe: bool = False
    ) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        like = original.detach()
        new: Any = original
        with torchshim.no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        pass
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                f"tuple...). Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if isinstance(new, Tensor) else len(new)
        if isinstance(new, Tensor):
            _same(
                "When `right_inverse` outputs one tensor, it may not change the {}.",
                "",
                ("original.{}", original),
                ("right_inverse(original).{}", new),
                "dtype",
                "device",
            )
            with torchshim.no_grad():
                original.data = new.data
            _register(self, "original", original)
        else:
            self._register_all(new, original)
        if not unsafe:
            self._check(like)

    def _register_all(self, tensors: Sequence[Any], original: Any) -> None:
        for i, tensor in enumerate(tensors):
            if not isinstance(tensor, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors "
                    f"(list, tuple...). Got element {i} of the sequence with type "
                    f"{type(tensor).__name__}."
                )
            each: Any = tensor
            if isinstance(original, Parameter):
                each = Parameter(each, original.requires_grad)
            each.requires_grad_(original.requires_grad)
            _register(self, f"original{i}", each)

    def _check(self, like: Any) -> None:
        found = self()
        if not isinstance(found, Tensor):
            raise ValueError(
                f"A parametrization must return a tensor. Got {type(found).__name__}."
            )
        _same(
            "Registering a parametrization may not change the {} of the tensor,",
            " unless `unsafe` flag is enabled.",
            ("unparametrized {}", like),
            ("parametrized {}", found),
            "dtype",
            "shape",
        )

    def right_inverse(self, value: Any) -> None:
        """Sets what the parametrizations start from so that they give `value`."""
        with torchshim.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement "
                        "right_inverse."
                    )
                value = module.right_inverse(value)
            if self.is_tensor:
                self._set_one(value)
            else:
                self._set_all(value)

    def _set_one(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise ValueError(
                f"`right_inverse` should return a tensor. Got {type(value).__name__}"
            )
        new: Any = value
        if new.dtype != self.original.dtype:
            raise ValueError(
                f"The tensor returned by `right_inverse` has dtype {new.dtype} while "
                f"`original` has dtype {self.original.dtype}"
            )
        self.original.data = new.data

    def _set_all(self, value: Any) -> None:
        if not isinstance(value, Sequence):
            raise ValueError(
                "'right_inverse' must return a sequence of tensors. Got "
                f"{type(value).__name__}."
            )
        if len(value) != self.ntensors:
            raise ValueError(
                "'right_inverse' must return a sequence of tensors of length "
                f"{self.ntensors}. Got a sequence of length {len(value)}."
            )
        for i, tensor in enumerate(value):
            original = getattr(self, f"original{i}")
            if not isinstance(tensor, Tensor):
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors or "
                    f"reference-type opaques. Got element {i} of type "
                    f"{type(tensor).__name__}."
                )
            new: Any = tensor
            if original.dtype != new.dtype:
                raise ValueError(
                    f"Tensor {i} returned by `right_inverse` has dtype {new.dtype} "
                    f"while `original{i}` has dtype {original.dtype}"
                )
            original.data = new.data

    def forward(self) -> Any:
        if self.is_tensor:
            x = self[0](self.original)
        else:
            x = self[0](*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for i in range(1, len(self)):
            x = self[i](x)
        return x


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    done = memo.get(id(self))
    if done is not None:
        return done
    replica = self.__new__(self.__class__)
    memo[id(self)] = replica
    replica.__dict__ = deepcopy(self.__dict__, memo)
    for slot in copyreg._slotnames(self.__class__):  # type: ignore[attr-defined]
        if hasattr(self, slot):
            setattr(replica, slot, deepcopy(getattr(self, slot), memo))
    return replica


def _getstate(self: Any) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). "
        "See:\nhttps://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def _inject_new_class(module: Module) -> None:
    """Gives a module a class of its own, on which properties can be put."""
    cls = module.__class__
    members: dict[str, Any] = {"__getstate__": _getstate}
    members["__module__"] = "torch.nn.utils.parametrize"
    # Copying needs a way of its own, as __getstate__ raises.
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = _deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _inject_property(module: Module, name: str) -> None:
    """Puts the property that computes the tensor on the class of a module."""

    def get(self: Any) -> Any:
        parametrization = self.parametrizations[name]
        if not _cache_enabled:
            return parametrization()
        # As in PyTorch the key is the module that was parametrized, not `self`.
        key = id(module), name
        if _cache.get(key) is None:
            _cache[key] = parametrization()
        return _cache[key]

    def set_original(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(module.__class__, name, property(get, set_original))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Any, *, unsafe: bool = False
) -> Module:
    """Has a parameter or buffer of a module computed by another module.

    `parametrization.forward` gives the tensor from what is learnt, its `right_inverse`,
    where there is one, what is learnt from a tensor that is assigned. ValueError where
    shape or dtype change, unless `unsafe`. Follows
    ``torch.nn.utils.parametrize.register_parametrization``.

    >>> import torchshim as torch
    >>> class Positive(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x.abs()
    >>> layer = torch.nn.Linear(2, 2)
    >>> _ = register_parametrization(layer, "weight", Positive())
    >>> bool((layer.weight >= 0).all())
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_another(module, tensor_name, parametrization)
        several: Any = module.parametrizations[tensor_name]
        several.append(parametrization)
        several.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        several = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = several
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a "
            f"parametrized element with name '{tensor_name}'"
        )
    return module


def _check_another(module: Module, name: str, parametrization: Any) -> None:
    """Raises where a further parametrization does not fit the ones before it."""
    y = getattr(module, name)
    x = parametrization(y)
    if not isinstance(x, Tensor):
        raise ValueError(
            f"A parametrization must return a tensor. Got {type(x).__name__}."
        )
    _same(
        "Registering a parametrization may not change the {} of the tensor,",
        " unless the `unsafe` flag is enabled.",
        (f"module.{name}.{{}}", y),
        (f"parametrization(module.{name}).{{}}", x),
        "dtype",
        "shape",
    )
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        z = parametrization.right_inverse(x)
    except NotImplementedError:
        return
    if not isinstance(z, Tensor):
        raise ValueError(
            "parametrization.right_inverse must return a tensor. Got: "
            f"{type(z).__name__}"
        )
    _same(
        "The tensor returned by parametrization.right_inverse must have the same {} "
        f"as module.{name},",
        " unless the `unsafe` flag is enabled.",
        (f"module.{name}.{{}}", y),
        ("returned {}", z),
        "dtype",
        "shape",
    )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has parametrizations, or one of the tensor named.

    Follows ``torch.nn.utils.parametrize.is_parametrized``.
    """
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Makes a parametrized tensor an ordinary parameter or buffer again.

    It keeps the value it has, or for ``leave_parametrized=False`` what the
    parametrizations start from. Follows
    ``torch.nn.utils.parametrize.remove_parametrizations``.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(
            f"Module {module} does not have a parametrization on {tensor_name}"
        )
    owner: Any = module
    several = owner.parametrizations[tensor_name]
    if several.is_tensor:
        original = several.original
        if leave_parametrized:
            with torchshim.no_grad():
                original.data = getattr(module, tensor_name).data
    elif leave_parametrized:
        t = getattr(module, tensor_name)
        original = Parameter(t) if t.requires_grad else t
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    delattr(module.__class__, tensor_name)
    del owner.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = module.__class__.__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of a module, without regard to parametrizations.

    Follows ``torch.nn.utils.parametrize.type_before_parametrizations``.
    """
    if is_parametrized(module):
        return module.__class__.__bases__[0]
    return type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Gives one module the parametrizations of another, and what they start from.

    Follows ``torch.nn.utils.parametrize.transfer_parametrizations_and_params``.
    """
    if not is_parametrized(from_module):
        return to_module
    source: Any = from_module.parametrizations
    for name in list(source) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in source[name]:
            register_parametrization(to_module, name, parametrization)
        target: Any = to_module.parametrizations[name]
        if hasattr(source[name], "original"):
            target.original = source[name].original
        else:
            for i in range(source[name].ntensors):
                setattr(target, f"original{i}", getattr(source[name], f"original{i}"))
    return to_module
