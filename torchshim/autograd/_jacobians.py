"""Whole Jacobians: row by row, by a batched gradient, or column by column at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchshim._derived import fns
from torchshim._functions.backward import grad as _grad
from torchshim._functions.backward import zeros_of
from torchshim._functions.func_reverse import standard_basis
from torchshim._functions.pieces import narrow
from torchshim._functions.vmap import plain_vmap
from torchshim.autograd.forward_ad import dual_level, make_dual, unpack_dual


def check_forward(create_graph: bool, strict: bool) -> None:
    """Raises for what forward mode does not do."""
    if create_graph:
        raise NotImplementedError(
            "torch.autograd.functional.jacobian: `create_graph=True` and "
            '`strategy="forward-mode"` are not supported together (yet). Please either '
            'set `create_graph=False` or `strategy="reverse-mode"`.'
        )
    if strict:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and "
            '`strategy="forward-mode"` are not supported together (yet). Please either '
            'set `strict=False` or `strategy="reverse-mode"`.'
        )


def row_by_row(
    outputs: Sequence[Any], inputs: Sequence[Any], create_graph: bool, strict: bool
) -> tuple[Any, ...]:
    """The Jacobian by one gradient for each element of the outputs."""
    return tuple(
        _rows_of(i, out, inputs, create_graph, strict) for i, out in enumerate(outputs)
    )


def _rows_of(
    i: int, out: Any, inputs: Sequence[Any], create_graph: bool, strict: bool
) -> tuple[Any, ...]:
    """The Jacobians of the i-th output by each input, found row by row."""
    columns: list[list[Any]] = [[] for _ in inputs]
    for j in range(out.nelement()):
        element = out.reshape(-1)[j]
        if out.requires_grad:
            found = _grad(
                element,
                inputs,
                retain_graph=True,
                create_graph=create_graph,
                allow_unused=True,
            )
        else:
            found = (None,) * len(inputs)
        for k, (each, column) in enumerate(zip(found, columns, strict=True)):
            if strict:
                _check_dependent(i, k, each, create_graph)
            column.append(zeros_of(inputs[k]) if each is None else each)
    return tuple(
        fns.stack(column, dim=0).view((*out.size(), *each.size()))
        for column, each in zip(columns, inputs, strict=True)
    )


def _check_dependent(i: int, k: int, row: Any, create_graph: bool) -> None:
    """Strict mode: refuses an input that an output, or its gradient, does not need."""
    if row is None:
        raise RuntimeError(
            f"Output {i} of the user-provided function is independent of input {k}. "
            "This is not allowed in strict mode."
        )
    if create_graph and not row.requires_grad:
        raise RuntimeError(
            "The jacobian of the user-provided function is independent of input "
            f"{k}. This is not allowed in strict mode when create_graph=True."
        )


def rows_at_once(
    outputs: Sequence[Any], inputs: Sequence[Any], create_graph: bool
) -> Any:
    """The Jacobian by one batched gradient."""
    total = sum(out.nelement() for out in outputs)
    basis = standard_basis(outputs, 0, total)
    tracked = [i for i, out in enumerate(outputs) if out.requires_grad]
    found: Any = (None,) * len(inputs)
    if tracked:
        found = _grad(
            [outputs[i] for i in tracked],
            inputs,
            [basis[i] for i in tracked],
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
            is_grads_batched=True,
        )
    rows: list[Any] = []
    at = 0
    for out in outputs:
        count = out.nelement()
        rows.append(
            tuple(
                out.new_zeros((*out.size(), *each.size()))
                if whole is None
                else narrow(whole, 0, at, count).reshape((*out.size(), *each.size()))
                for whole, each in zip(found, inputs, strict=True)
            )
        )
        at += count
    return tuple(rows)


def columns_at_once(func: Callable[..., Any], inputs: Sequence[Any]) -> list[Any]:
    """The Jacobian in forward mode: a list for each output, in it one for each input.

    `func` gives a tuple.
    """

    def push(*tangents: Any) -> tuple[Any, ...]:
        with dual_level():
            duals = [make_dual(x, t) for x, t in zip(inputs, tangents, strict=True)]
            pairs = [unpack_dual(out) for out in func(*duals)]
            return tuple(zeros_of(p) if t is None else t for p, t in pairs)

    total = sum(each.nelement() for each in inputs)
    rows: list[Any] = []
    for out in plain_vmap(push)(*standard_basis(inputs, 0, total)):
        row: list[Any] = []
        at = 0
        for each in inputs:
            count = each.nelement()
            piece = fns.movedim(narrow(out, 0, at, count), 0, -1)
            row.append(piece.reshape((*out.size()[1:], *each.size())))
            at += count
        rows.append(row)
    return rows
