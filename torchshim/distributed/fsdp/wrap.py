"""Which modules of a model are wrapped: by class, by size, by a function of one's own.

https://docs.pytorch.org/docs/2.13/fsdp.html

>>> import torchshim as torch
>>> from torchshim.distributed.fsdp.wrap import enable_wrap, wrap
>>> with enable_wrap(wrapper_cls=torch.nn.Sequential):
...     print(wrap(torch.nn.ReLU()))
Sequential(
  (0): ReLU()
)
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from torchshim import nn

__all__ = [
    "CustomPolicy",
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "enable_wrap",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
    "wrap",
]

Kwargs = dict[str, Any]
Chosen = dict[nn.Module, Kwargs]


# Policies that are asked on the way down (`recurse`) and again on the way up. ---------


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Every module is wrapped."""
    return True


def lambda_auto_wrap_policy(
    module: nn.Module,
    recurse: bool,
    nonwrapped_numel: int,
    lambda_fn: Callable[[nn.Module], bool],
) -> bool:
    """Modules are wrapped for which `lambda_fn` says so."""
    return True if recurse else lambda_fn(module)


def transformer_auto_wrap_policy(
    module: nn.Module,
    recurse: bool,
    nonwrapped_numel: int,
    transformer_layer_cls: Iterable[type[nn.Module]],
) -> bool:
    """Modules of some classes are wrapped."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def _or_policy(
    module: nn.Module, recurse: bool, nonwrapped_numel: int, policies: Iterable[Any]
) -> bool:
    """Modules are wrapped that one of several policies chooses."""
    given = {"recurse": recurse, "nonwrapped_numel": nonwrapped_numel}
    return any(policy(module=module, **given) for policy in policies)


def size_based_auto_wrap_policy(
    module: nn.Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = 10**8,
    force_leaf_modules: Iterable[type[nn.Module]] | None = None,
    exclude_wrap_modules: Iterable[type[nn.Module]] | None = None,
) -> bool:
    """Modules are wrapped that have so many elements which are not wrapped yet."""
    name = "FORCE_LEAF_MODULES" if recurse else "EXCLUDE_WRAP_MODULES"
    left_out = force_leaf_modules if recurse else exclude_wrap_modules
    if left_out is None:
        left_out = getattr(size_based_auto_wrap_policy, name)
    return nonwrapped_numel >= min_num_params and not isinstance(
        module, tuple(left_out)
    )


size_based_auto_wrap_policy.FORCE_LEAF_MODULES = {nn.MultiheadAttention}
size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {nn.ModuleList, nn.ModuleDict}


# Policies that choose among all modules at once. --------------------------------------


class _Policy(ABC):
    """What chooses modules, each with keywords for what wraps it."""

    @abstractmethod
    def _run_policy(
        self, root_module: nn.Module, ignored_modules: set[nn.Module], root_kwargs: Any
    ) -> Chosen: ...


class ModuleWrapPolicy(_Policy):
    """The modules of some classes, with the keywords of the root."""

    def __init__(self, module_classes: Iterable[type[nn.Module]]) -> None:
        self._module_classes = set(module_classes)
        self._module_classes_str = str(self._module_classes)

    def _run_policy(
        self, root_module: nn.Module, ignored_modules: set[nn.Module], root_kwargs: Any
    ) -> Chosen:
        classes = tuple(self._module_classes)
        return {
            module: dict(root_kwargs)
            for module in root_module.modules()
            if module not in ignored_modules and isinstance(module, classes)
        }

    def __call__(self, module: nn.Module, recurse: bool, *args: Any, **kw: Any) -> bool:
        return transformer_auto_wrap_policy(module, recurse, -1, self._module_classes)

    def __repr__(self) -> str:
        return f"{super().__repr__()}({self._module_classes_str})"


class CustomPolicy(_Policy):
    """The modules for which a function gives True, or keywords of their own."""

    def __init__(self, lambda_fn: Callable[[nn.Module], bool | Kwargs]) -> None:
        self._lambda_fn = lambda_fn

    def _run_policy(
        self, root_module: nn.Module, ignored_modules: set[nn.Module], root_kwargs: Any
    ) -> Chosen:
        chosen: Chosen = {}
        for module in root_module.modules():
            if module in ignored_modules:
                continue
            answer = self._lambda_fn(module)
            if not isinstance(answer, (dict, bool)):
                raise ValueError(
                    "The lambda_fn passed to CustomPolicy should return False/True or "
                    f"a kwarg dict, but it returned {answer}"
                )
            if answer:
                own = answer if isinstance(answer, dict) else {}
                chosen[module] = {**root_kwargs, **own}
        return chosen


# Wrapping. ----------------------------------------------------------------------------


class _ConfigAutoWrap:
    """What `wrap` wraps modules with at the moment."""

    in_autowrap_context: ClassVar[bool] = False
    wrapper_cls: ClassVar[Callable[..., nn.Module] | None] = None
    kwargs: ClassVar[Kwargs] = {}


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """Within it `wrap` wraps modules in a class, with these keywords."""
    if _ConfigAutoWrap.in_autowrap_context:
        raise NotImplementedError(
            "You are already within an autowrap context and we currently do not "
            "supported nested autowrap."
        )
    _ConfigAutoWrap.in_autowrap_context = True
    _ConfigAutoWrap.wrapper_cls = wrapper_cls
    _ConfigAutoWrap.kwargs = wrapper_kwargs
    try:
        yield
    finally:
        _ConfigAutoWrap.in_autowrap_context = False
        _ConfigAutoWrap.wrapper_cls = None
        _ConfigAutoWrap.kwargs = {}


def wrap(module: nn.Module, **wrap_overrides: Any) -> nn.Module:
    """The module wrapped as `enable_wrap` says, or itself outside of that."""
    if not _ConfigAutoWrap.in_autowrap_context:
        return module
    kwargs = {**_ConfigAutoWrap.kwargs, **wrap_overrides}
    return _wrap(module, _ConfigAutoWrap.wrapper_cls, **kwargs)


def _wrap(module: nn.Module, wrapper_cls: Any, **kwargs: Any) -> nn.Module:
    if wrapper_cls is None:
        raise AssertionError("Expected wrapper_cls to be set")
    own = getattr(module, "_wrap_overrides", {})
    return wrapper_cls(module, **{**kwargs, **own})


def _recursive_wrap(
    module: nn.Module,
    auto_wrap_policy: Callable[..., bool],
    wrapper_cls: Any,
    ignored_modules: set[nn.Module],
    ignored_params: set[Any],
    only_wrap_children: bool = False,
    **kwargs: Any,
) -> tuple[nn.Module, int]:
    """Wraps what a policy chooses, from the leaves up; the module, elements wrapped."""
    for child in module.modules():
        wrapped = isinstance(wrapper_cls, type) and isinstance(child, wrapper_cls)
        if wrapped and child not in ignored_modules:
            raise AssertionError(
                f"Child module {child} is already wrapped by {wrapper_cls}"
            )
    count = sum(p.numel() for p in module.parameters() if p not in ignored_params)
    if not auto_wrap_policy(module=module, recurse=True, nonwrapped_numel=count):
        return module, 0
    done = 0
    for name, child in module.named_children():
        if child in ignored_modules:
            continue
        new, numel = _recursive_wrap(
            child,
            auto_wrap_policy,
            wrapper_cls,
            ignored_modules,
            ignored_params,
            **kwargs,
        )
        setattr(module, name, new)
        done += numel
    rest = count - done
    if not only_wrap_children and auto_wrap_policy(
        module=module, recurse=False, nonwrapped_numel=rest
    ):
        return _wrap(module, wrapper_cls, **kwargs), count
    return module, done


def _wrap_chosen(root: nn.Module, chosen: Chosen, wrapper: Any) -> None:
    """Wraps the modules below a root that a policy chose, from the leaves up."""
    seen = {root}

    def walk(module: nn.Module) -> None:
        for name, child in list(module.named_children()):
            if child in seen:
                continue
            seen.add(child)
            walk(child)
            if child in chosen:
                setattr(module, name, wrapper(child, **chosen[child]))

    walk(root)
