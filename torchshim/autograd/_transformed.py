"""Custom functions under `vmap` and in forward mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from torchshim import _pytree as tree
from torchshim._core.levels import DUAL, VMAP, Level
from torchshim._core.record import local
from torchshim._core.storage import base_of
from torchshim._derived import fns
from torchshim._functions.backward import zeros_of
from torchshim._functions.func_forward import check_size, parted
from torchshim._functions.vmap import argument_behind, entered, has_level
from torchshim._tensor import Tensor

_MORE = (
    " For more details, please see "
    "https://pytorch.org/docs/main/notes/extending.func.html"
)
NEEDS_SETUP_CONTEXT = (
    "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, "
    "jacrev, ...), it must override the setup_context staticmethod." + _MORE
)
_TWO_RETURNS = (
    "Expected the vmap staticmethod to have two returns, an output and out_dims with "
    "pytree structure compatible with the output. "
)


class VmapInfo(NamedTuple):
    """What the `vmap` of a custom function is told."""

    batch_size: int
    randomness: str


def acting(levels: Sequence[Level], args: tuple[Any, ...]) -> Level | None:
    """The innermost level that a call with these arguments is transformed by."""
    for level in reversed(levels):
        if level.kind != VMAP or (
            not level.plain
            and any(_has_level(leaf, level) for leaf in tree.tree_leaves(args))
        ):
            return level
    return None


def forward_of(cls: Any, args: tuple[Any, ...]) -> Any:
    """The outputs of a custom function's forward; under `vmap` by its own rule."""
    level = _innermost(args)
    if level is None:
        return cls.forward(*args)
    has_rule = cls.vmap is not cls._missing_vmap
    if cls.generate_vmap_rule:
        if has_rule:
            raise RuntimeError(
                f"You tried to vmap over {cls.__name__}, but it has both "
                "generate_vmap_rule=True and an overridden vmap staticmethod. Please "
                "set generate_vmap_rule=False or delete the overridden vmap "
                "staticmethod to avoid ambiguity." + _MORE
            )
        # The forward is made of operators, which know what to do.
        return cls.forward(*args)
    if not has_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap "
            "support. Please override and implement the vmap staticmethod or set "
            "generate_vmap_rule=True." + _MORE
        )
    leaves, spec = tree.tree_flatten(args)
    behind = [
        argument_behind(leaf, level) if _has_level(leaf, level) else (leaf, None)
        for leaf in leaves
    ]
    whole, dims = [each for each, _ in behind], [dim for _, dim in behind]
    versions = [each._version if isinstance(each, Tensor) else 0 for each in whole]
    info = VmapInfo(level.size, level.randomness)
    found = cls.vmap(info, spec.unflatten(dims), *spec.unflatten(whole))
    for leaf, each, version in zip(leaves, whole, versions, strict=True):
        # What the rule writes to its argument, it writes to the mapped one.
        if each is not leaf and each._version != version:
            if each._storage is None or each._storage is not leaf._storage:
                leaf.copy_(entered(each, 0, level))
    given = {id(each): leaf for each, leaf in zip(whole, leaves, strict=True)}
    return _mapped(found, given, level)


def _mapped(found: Any, given: dict[int, Any], level: Level) -> Any:
    """What a rule for `vmap` gave, seen from within; an argument is what it was."""
    if not isinstance(found, tuple):
        raise RuntimeError(f"{_TWO_RETURNS}Got a {type(found)} instead")
    if len(found) != 2:
        raise RuntimeError(f"{_TWO_RETURNS}Got {len(found)} returns instead")
    output, out_dims = found
    leaves, spec = tree.tree_flatten(output)
    places = tree._broadcast_to_and_flatten(out_dims, spec)
    if places is None:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible "
            f"(output, out_dims) tuple. Expected out_dims={out_dims} to be compatible "
            "with the structure of `output`. out_dims has structure "
            f"{tree.tree_flatten(out_dims)[1]} but output has structure {spec}." + _MORE
        )
    results = []
    for leaf, dim in zip(leaves, places, strict=True):
        if isinstance(leaf, Tensor) and id(leaf) in given:
            results.append(given[id(leaf)])
        elif dim is None or not isinstance(leaf, Tensor):
            results.append(leaf)
        else:
            results.append(entered(leaf, dim % leaf.dim(), level))
    return spec.unflatten(results)


def _has_level(leaf: Any, level: Level) -> bool:
    return isinstance(leaf, Tensor) and has_level(leaf, level)


def _innermost(args: Sequence[Any]) -> Level | None:
    """The innermost level that maps over arguments; it may be over by now."""
    leaves = tree.tree_leaves(args)
    levels = local.rec.levels
    sizes = {n: s for a in leaves if isinstance(a, Tensor) for n, s in a._tmeta.batch}
    for level in levels:
        if level.plain:
            sizes.pop(level.number, None)
    if not sizes:
        return None
    number = max(sizes)
    for level in levels:
        if level.number == number:
            return level
    return Level(number, VMAP, 0, sizes[number])


def fitted(grad: Any, event: Any, operand: Any, outside: tuple[int, ...]) -> Any:
    """A gradient summed over the examples that its operand was the same for.

    Not over those of a `vmap` around what differentiates, nor of one that maps over
    the vectors only.
    """
    if not grad._tmeta.batch:
        return grad
    mapped = {number for meta in event.given for number, _ in meta.batch}
    mapped -= {number for number, _ in operand.batch}
    for number, _ in grad._tmeta.batch:
        if number in mapped and number not in outside:
            grad = fns._vmap_sum(grad, number)
    return grad


_NOT_IN_PLACE = (
    "An inplace custom Function is not modifying the forward mode gradients inplace. "
    "If the forward is modifying an input inplace, then the jvp function must modify "
    "the corresponding gradient inplace."
)


_NOT_DIFFERENTIABLE = (
    "Function's jvp returned a gradient at position {}, but  the corresponding forward "
    "output is not a differentiable Tensor.You should return None at that position "
    "instead."
)
_NO_VIEW = (
    "A custom Function's forward is returning a view (or an input as-is) but the jvp "
    "is not returning a view."
)
_OTHER_VIEW = (
    "A custom Function is returning a view but the jvp is not returning a view of the "
    "{}given grad input."
)


def _check_view(
    rec: Any,
    level: Level,
    out: Any,
    tangent: Any,
    args: Sequence[Any],
    held: Sequence[dict[int, Any]],
) -> None:
    """Raises where the tangent of a view of an input is no view of its tangent."""
    base = base_of(out)
    for arg, known in zip(args, held, strict=True):
        given = known.get(level.number)
        if base is None or given is None:
            continue
        of_arg, of_given = base_of(arg), base_of(given)
        if base is not (arg if of_arg is None else of_arg):
            continue
        # The tangent of a view is one itself, though none that is recorded as such;
        # a dual tensor is a view, too, but the tangent that it was given need not be.
        view = of_given is not None or (
            of_arg is not None
            and (len(arg._path) > 1 or bool(tangents_of(rec, (of_arg,))[0]))
        )
        if view and tangent is given:
            return
        found = base_of(tangent)
        if found is None:
            raise RuntimeError(_NO_VIEW)
        if found is not (given if of_given is None else of_given):
            raise RuntimeError(_OTHER_VIEW.format("same base as the " if view else ""))


def tangents_of(rec: Any, args: Sequence[Any]) -> list[dict[int, Any]]:
    """The tangents of each argument by level, before a forward may change it."""
    duals = rec.recording.duals
    return [
        duals.get(rec.slot_of(arg), {}) if isinstance(arg, Tensor) else {}
        for arg in args
    ]


def behind_rule(rec: Any, cls: Any, args: tuple[Any, ...]) -> Sequence[int]:
    """The numbers of the levels around the one whose `vmap` has a rule of its own."""
    mapping = _innermost(args) if cls.vmap is not cls._missing_vmap else None
    numbers = [level.number for level in rec.levels]
    if mapping is None or mapping.number not in numbers:
        return ()
    return numbers[: numbers.index(mapping.number)]


def push_tangents(
    rec: Any,
    ctx: Any,
    args: Sequence[Any],
    outputs: Sequence[Any],
    held: Sequence[dict[int, Any]],
    ruled: Sequence[int],
    known: Sequence[dict[int, Any]],
) -> None:
    """Gives the outputs tangents, by the function's `jvp`.

    Those of the levels `ruled` are `known`.
    """
    for out, tangents in zip(outputs, known, strict=False):
        for number in tangents.keys() & ruled:
            rec.give_tangent(out, number, tangents[number])
    numbers = {n for each in held for n in each}.difference(ruled)
    for level in [each for each in rec.levels if each.number in numbers]:
        _push(rec, ctx, args, outputs, level, held)


def _differentiable(tensor: Tensor) -> bool:
    kind = tensor._tmeta.dtype
    return kind.is_floating_point or kind.is_complex


def _push(
    rec: Any,
    ctx: Any,
    args: Sequence[Any],
    outputs: Sequence[Any],
    level: Level,
    held: Sequence[dict[int, Any]],
) -> None:
    tangents: list[Any] = []
    for arg, known in zip(args, held, strict=True):
        tangent: Any = None
        if isinstance(arg, Tensor) and _differentiable(arg):
            tangent = known.get(level.number)
            if tangent is None and ctx._materialize:
                tangent = zeros_of(arg)
        tangents.append(tangent)
    ctx._saved_for_forward = tuple(
        None if each is None else parted(each, level)[0]
        for each in ctx.saved_for_forward or ()
    )
    dirty = {id(each) for each in ctx.dirty_tensors or ()}
    written = {
        id(arg): (tangent, tangent._version)
        for arg, tangent in zip(args, tangents, strict=True)
        if id(arg) in dirty and tangent is not None
    }
    try:
        found = ctx.apply_jvp(*tangents)
    finally:
        ctx._saved_for_forward = None
    moved = found if isinstance(found, tuple) else (found,)
    if len(moved) != len(outputs):
        raise RuntimeError(
            "Function's jvp returned an invalid number of forward gradients (expected "
            f"{len(outputs)} but got {len(moved)})"
        )
    constant = {id(each) for each in ctx.non_differentiable or ()}
    for i, (out, tangent) in enumerate(zip(outputs, moved, strict=True)):
        if tangent is not None and not isinstance(tangent, Tensor):
            raise RuntimeError(
                f"expected Variable or None (got {type(tangent).__name__}) for grad "
                f"output {i}."
            )
        if isinstance(out, Tensor) and tangent is not None:
            if id(out) in constant or not _differentiable(out):
                raise RuntimeError(_NOT_DIFFERENTIABLE.format(i))
        before, version = written.get(id(out), (tangent, None))
        if tangent is not before or (
            tangent is not None and tangent._version == version
        ):
            raise RuntimeError(_NOT_IN_PLACE)
        if isinstance(out, Tensor) and tangent is not None:
            if level.kind == DUAL and id(out) not in dirty:
                _check_view(rec, level, out, tangent, args, held)
            check_size(out, tangent)
            rec.give_tangent(out, level.number, tangent)
