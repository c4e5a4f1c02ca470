"""Modules called with other parameters and buffers than their own.

https://docs.pytorch.org/docs/2.13/generated/torch.func.functional_call.html
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from torchshim._tensor import Tensor
from torchshim.nn.modules.module import Module

__all__ = ["functional_call"]

_MISSING: Any = object()


def _submodule(module: Module, path: str) -> Module:
    for attr in path.split(".") if path else ():
        try:
            found = getattr(module, attr)
        except AttributeError as error:
            raise AttributeError(
                f"{module._get_name()} has no attribute `{attr}`"
            ) from error
        if not isinstance(found, Module):
            raise TypeError(
                f"submodule `{path}`: {found} is not an instance of torch.nn.Module"
            )
        module = found
    return module


def _swap(module: Module, path: str, tensor: Any) -> Any:
    """Puts a tensor in the place of a module's; gives what was there."""
    if path == "":
        raise KeyError('tensor name can\'t be empty string ""')
    prefix, _, name = path.rpartition(".")
    owner = _submodule(module, prefix)
    if not (tensor is _MISSING or tensor is None or isinstance(tensor, Tensor)):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    tables: list[Any] = [owner._parameters, owner._buffers]
    for table in tables:
        if name in table:
            before = table[name]
            if tensor is _MISSING:
                del table[name]
            else:
                table[name] = tensor
            return before
    before = getattr(owner, name, _MISSING)
    if not (before is _MISSING or before is None or isinstance(before, Tensor)):
        raise TypeError(
            f"attribute `{name}`: {before} is not an instance of torch.Tensor"
        )
    if tensor is not _MISSING:
        setattr(owner, name, tensor)
    elif before is not _MISSING:
        delattr(owner, name)
    return before


def _swap_all(module: Module, tensors: dict[str, Any]) -> dict[str, Any]:
    """Swaps several; after an error everything is as it was."""
    before: dict[str, Any] = {}
    try:
        for path, tensor in tensors.items():
            before[path] = _swap(module, path, tensor)
    except Exception:
        for path, tensor in before.items():
            _swap(module, path, tensor)
        raise
    return before


def _named_tensors(module: Module) -> dict[str, Any]:
    found: dict[str, Any] = dict(module.named_parameters(remove_duplicate=False))
    found.update(module.named_buffers(remove_duplicate=False))
    return found


def _with_ties(module: Module, given: dict[str, Any]) -> dict[str, Any]:
    """What is given, under all names of tensors that have several."""
    names: dict[int, set[str]] = {}
    for name, tensor in _named_tensors(module).items():
        names.setdefault(id(tensor), set()).add(name)
    ties = {name: group for group in names.values() for name in group if len(group) > 1}
    full = dict(given)
    for name in given:
        group = ties.get(name)
        if group is None:
            continue
        values = {id(given[other]) for other in group if other in given}
        if len(values) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(group)}, which "
                "are tied. Consider using tie_weights=False"
            )
        full.update(dict.fromkeys(group, given[name]))
    return full


def _check_keys(module: Module, given: dict[str, Any]) -> None:
    known = set(_named_tensors(module))
    unexpected, missing = sorted(set(given) - known), sorted(known - set(given))
    texts: list[str] = []
    if unexpected:
        texts.append(f"Unexpected key(s): {', '.join(map(repr, unexpected))}.")
    if missing:
        texts.append(f"Missing key(s): {', '.join(map(repr, missing))}.")
    if texts:
        raise RuntimeError(
            f"Error(s) in reparametrizing for {module._get_name()}:\n\t"
            + "\n\t".join(texts)
        )


@contextlib.contextmanager
def _reparametrize_module(
    module: Module,
    parameters_and_buffers: dict[str, Any],
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> Iterator[None]:
    """The module has the tensors given, until the end of the block.

    What it puts into their places meanwhile is written to the dict.
    """
    given = parameters_and_buffers
    if tie_weights:
        given = _with_ties(module, given)
    if strict:
        _check_keys(module, given)
    before = _swap_all(module, given)
    try:
        yield
    finally:
        if stack_weights:
            before = dict(reversed(before.items()))
        after = _swap_all(module, before)
        for name in parameters_and_buffers:
            if name in after:
                parameters_and_buffers[name] = after[name]


def _functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _reparametrize_module(
        module, parameters_and_buffers, tie_weights=tie_weights, strict=strict
    ):
        return module(*args, **(kwargs or {}))


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The old name of `torch.func.functional_call`."""
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 "
        "and will be removed in a future version of PyTorch. Please use "
        "`torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(
        module,
        parameters_and_buffers,
        args,
        kwargs,
        tie_weights=tie_weights,
        strict=strict,
    )
