"""Modules called with other parameters and buffers than their own.

https://docs.pytorch.org/docs/2.13/generated/torch.func.functional_call.html
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from torchshim import _warnings as warnings
from torchshim.nn.modules.module import Module
from torchshim.nn.utils._named_member_accessor import NamedMemberAccessor

__all__ = ["functional_call"]

#: Modules that are refused: `torch.jit`, a layer above, adds its own.
JITTED: list[type] = []


def _with_ties(module: Module, given: dict[str, Any]) -> dict[str, Any]:
    """What is given, under all names of tensors that have several."""
    names: dict[int, set[str]] = {}
    for name, tensor in NamedMemberAccessor(module).named_tensors(False):
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
    missing, unexpected = NamedMemberAccessor(module).check_keys(given)
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
    accessor = NamedMemberAccessor(module)
    before, _ = accessor.swap_tensors_dict(given, allow_missing=True)
    try:
        yield
    finally:
        if stack_weights:
            before = dict(reversed(before.items()))
        after, _ = accessor.swap_tensors_dict(before, allow_missing=True)
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
    if isinstance(module, tuple(JITTED)):
        raise RuntimeError("The stateless API can't be used with Jitted modules")
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
