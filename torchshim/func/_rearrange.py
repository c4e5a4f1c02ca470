"""`torch.func.rearrange`: dimensions split, ordered and joined by a pattern."""

from __future__ import annotations

import functools
import keyword
import math
import re
import warnings
from collections.abc import Sequence
from typing import Any

import torchshim
from torchshim._tensor import Tensor

_ELLIPSIS = "…"  # as one character

Groups = list[list[str] | str]


class DimensionBindError(Exception):
    """A dimension has another size than was said, or none can be found for it."""


def rearrange(
    tensor: Tensor | Sequence[Tensor], pattern: str, **axes_lengths: int
) -> Tensor:
    """Dimensions split, ordered and joined as a pattern says: "b (h w) c -> b c h w".

    Several tensors are stacked first. Of the sizes that a dimension is split into all
    but one are given by name. Follows `torch.func.rearrange`.

    https://docs.pytorch.org/docs/2.13/generated/torch.func.rearrange.html

    >>> import torchshim as torch
    >>> torch.func.rearrange(torch.arange(4), "(a b) -> b a", a=2)
    tensor([[0, 2],
            [1, 3]])
    """
    x: Any = tensor if isinstance(tensor, Tensor) else torchshim.stack(tensor)
    found = _plan(len(x.shape), pattern, **axes_lengths)
    if found is None:
        return x
    dims, order, joined = found
    sizes = [
        size
        for length, group in zip(x.shape, dims, strict=True)
        for size in _split(length, group, axes_lengths)
    ]
    made = x.reshape(sizes).permute(order)
    ends = iter(made.shape)
    return made.reshape([math.prod(next(ends) for _ in range(n)) for n in joined])


@functools.lru_cache(256)
def _plan(
    ndim: int, pattern: str, **lengths: int
) -> tuple[list[list[str]], list[int], list[int]] | None:
    """The names within each dimension, the order of all, how many each result joins.

    None: there is nothing to do.
    """
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError("Pattern must contain a single '->' separator")
    if _ELLIPSIS in lengths:
        raise ValueError(f"'{_ELLIPSIS}' is not an allowed axis identifier")
    left, right = map(_side, sides)
    if _ELLIPSIS not in left and _inside(right, _ELLIPSIS):
        if not _inside(left, _ELLIPSIS):
            raise ValueError(
                f"Ellipsis found in right side, but not left side of a pattern "
                f"{pattern}"
            )
    if _ELLIPSIS not in left and _inside(left, _ELLIPSIS):
        raise ValueError(
            f"Ellipsis is parenthesis in the left side is not allowed: {pattern}"
        )
    _check(left, right, lengths)
    extra = ndim - len(left) + (_ELLIPSIS in left)
    if extra < 0 or (extra and _ELLIPSIS not in left):
        bound = "less than or equal" if _ELLIPSIS in left else "equal"
        of = "dimensions in the tensor"
        raise ValueError(
            f"Number of dimensions in pattern ({len(left) - (_ELLIPSIS in left)}) must "
            f"be {bound} to the number of {of} ({ndim})"
        )
    if not ndim and not right:
        return None
    rest = [f"{_ELLIPSIS}{i}" for i in range(extra)]
    dims: list[list[str]] = []
    for group in left:
        dims += [[name] for name in rest] if isinstance(group, str) else [group]
    # A dimension of size 1 that has no name is split into nothing.
    names = [name for group in dims for name in group]
    order: list[int] = []
    joined: list[int] = []
    for group in right:
        if isinstance(group, str):
            order += [names.index(name) for name in rest]
            joined += [1] * extra
            continue
        inner = [n for g in group for n in (rest if g == _ELLIPSIS else [g])]
        order += [names.index(name) for name in inner]
        joined.append(len(inner))
    return dims, order, joined


def _inside(groups: Groups, name: str) -> bool:
    return any(name in group for group in groups)


def _check(left: Groups, right: Groups, lengths: dict[str, int]) -> None:
    for length in lengths.values():
        if type(length) is not int:
            raise TypeError(
                f"rearrange axis lengths must be integers, got: {type(length)}"
            )
    names = [{name for group in side for name in group} for side in (left, right)]
    if any(name.isdecimal() for name in (*names[0], *names[1])):
        raise ValueError("rearrange only supports unnamed axes of size 1")
    apart = names[0] ^ names[1]
    if apart:
        raise ValueError(
            "Identifiers only on one side of rearrange expression (should be on "
            f"both): {apart}"
        )
    unknown = lengths.keys() - names[0]
    if unknown:
        raise ValueError(f"Identifiers not found in rearrange expression: {unknown}")


def _side(text: str) -> Groups:
    """The dimensions of one side: the names that each has, or the ellipsis itself."""
    if "." in text:
        if "..." not in text:
            raise ValueError("Expression may contain dots only inside ellipsis (...)")
        if text.count("...") != 1 or text.count(".") != 3:
            raise ValueError(
                "Expression may contain dots only inside ellipsis (...); only one "
                "ellipsis for tensor "
            )
        text = text.replace("...", _ELLIPSIS)
    groups: Groups = []
    group: list[str] | None = None
    seen: set[str] = set()
    for token in re.findall(rf"[\w{_ELLIPSIS}]+|[^ ]", text):
        if token == "(":
            if group is not None:
                raise ValueError(
                    "Axis composition is one-level (brackets inside brackets not "
                    "allowed)"
                )
            group = []
        elif token == ")":
            if group is None:
                raise ValueError("Brackets are not balanced")
            groups.append(group)
            group = None
        elif not re.fullmatch(rf"[\w{_ELLIPSIS}]+", token):
            raise ValueError(f"Unknown character '{token}'")
        else:
            _check_name(token, seen)
            if group is not None:
                group += [] if token == "1" else [token]
            elif token == _ELLIPSIS:
                groups.append(token)
            else:
                groups.append([] if token == "1" else [token])
    if group is not None:
        raise ValueError(f"Imbalanced parentheses in expression: '{text}'")
    return groups


def _check_name(name: str, seen: set[str]) -> None:
    if name in seen:
        raise ValueError(f"Indexing expression contains duplicate dimension '{name}'")
    if name.isdecimal():
        if int(name) < 1:
            raise ValueError(
                f"Anonymous axis should have positive length, not {int(name)}"
            )
        return
    seen.add(name)
    if name == _ELLIPSIS:
        return
    reason = ""
    if not name.isidentifier():
        reason = "not a valid python identifier"
    elif name[0] == "_" or name[-1] == "_":
        reason = "axis name should should not start or end with underscore"
    if reason:
        raise ValueError(f"Invalid axis identifier: {name}\n{reason}")
    if keyword.iskeyword(name):
        warnings.warn(
            f"It is discouraged to use axes names that are keywords: {name}",
            RuntimeWarning,
            stacklevel=2,
        )


def _split(length: int, group: list[str], lengths: dict[str, Any]) -> list[int]:
    """The sizes that a dimension is split into."""
    open_ends = [name for name in group if name not in lengths]
    known = math.prod(lengths[name] for name in group if name in lengths)
    sizes = [lengths.get(name, -1) for name in group]
    if len(open_ends) > 1:
        raise DimensionBindError(
            f"cannot infer the sizes of two dimensions at once {tuple(group)}"
        )
    if open_ends and (not known or length % known):
        raise DimensionBindError(
            f"inferred dimension does not evenly fit into larger dimension: {length} "
            f"vs {sizes}"
        )
    if not open_ends and known != length:
        raise DimensionBindError(
            f"Dimension sizes to do not match ({length} != {known}) when matching "
            f"dimension pack {tuple(group)}"
        )
    return [length // known if name in open_ends else lengths[name] for name in group]
