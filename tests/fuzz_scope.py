"""What the lines of random programs use, and what is asked about them."""

from __future__ import annotations

import ast
import functools
import re
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np


def make_scope(torch: Any, log: list[Any]) -> dict[str, Any]:
    """The names that a program's lines use."""

    def thread(work: Any) -> Any:
        found: list[Any] = []

        def run() -> None:
            try:
                found.append((work(), None))
            except Exception as error:
                found.append((None, error))

        worker = threading.Thread(target=run)
        worker.start()
        worker.join()
        value, error = found[0]
        if error is not None:
            raise error
        return value

    def boom(grad: Any) -> None:
        raise RuntimeError("boom")

    def read(value: Any) -> None:
        log.append(plain(value))

    def peek(grad: Any) -> None:
        log.append(plain(grad.tolist()))

    def double(grad: Any) -> Any:
        return grad * 2

    def bump(grad: Any) -> Any:
        return grad + 1 if not grad.requires_grad else None

    def hook(tensor: Any, function: Any) -> Any:
        # PyTorch crashes at a hook on a view whose base was written to since and
        # whose node nobody has asked for.
        tensor.grad_fn  # noqa: B018
        return tensor.register_hook(function)

    def distinct(*tensors: Any) -> list[Any]:
        """Tensors, none of which is in the memory of another."""
        return [*{memory_of(t): t for t in tensors}.values()]

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * 3 * x * x

    class Halves(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.needed = ctx.needs_input_grad
            return x * 0.5, y * 0.5

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            log.append(list(ctx.needed))
            return first * 0.5, second * 0.5

    class Sum(torch.autograd.Function):
        forward = staticmethod(lambda ctx, x, y: x + y)
        backward = staticmethod(lambda ctx, grad: (grad, grad))

    packs = {
        "same": (lambda x: x, lambda x: x),
        "copied": (lambda x: x.detach().clone(), lambda x: x),
        "read": (
            lambda x: (x.tolist(), x.dtype),
            lambda p: torch.tensor(p[0], dtype=p[1]),
        ),
    }

    def saved(kind: str) -> Any:
        return torch.autograd.graph.saved_tensors_hooks(*packs[kind])

    entered: list[Any] = []

    def enter(kind: str) -> None:
        entered.append(saved(kind))
        entered[-1].__enter__()

    def leave() -> None:
        """Leaves what was entered, as programs do at their end at the latest."""
        while entered:
            entered.pop().__exit__(None, None, None)

    def computed_again(function: Any, x: Any, use_reentrant: bool = False) -> Any:
        again = torch.utils.checkpoint.checkpoint
        return again(function, x, use_reentrant=use_reentrant)

    return {
        "Cube": Cube,
        "Halves": Halves,
        "Sum": Sum,
        "computed_again": computed_again,
        "distinct": distinct,
        "enter": enter,
        "hook": hook,
        "kept": [],
        "leave": leave,
        "torch": torch,
        "np": np,
        "thread": thread,
        "boom": boom,
        "read": read,
        "saved": saved,
        "squared": lambda x: x * x,
        "peek": peek,
        "double": double,
        "bump": bump,
        "k": 0,
    }


def plain(value: Any) -> Any:
    """A value as something that can be compared without either module."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return ["ndarray", value.tolist()]
    if hasattr(value, "requires_grad") and hasattr(value, "tolist"):
        return ["tensor", value.tolist()]
    return type(value).__name__


def tensors_of(scope: dict[str, Any], torch: Any) -> dict[str, Any]:
    return {n: v for n, v in sorted(scope.items()) if isinstance(v, torch.Tensor)}


_compiled: dict[str, Any] = {}


def code_of(line: str) -> Any:
    code = _compiled.get(line)
    if code is None:
        code = _compiled[line] = compile(line, f"<{line}>", "exec")
    return code


# Writes whose operands may lie in the memory that they write to.


def writes(line: str) -> Iterator[tuple[str, list[str]]]:
    """The names that a line writes to in place, each with the names it reads."""
    for node in ast.walk(ast.parse(line)):
        target: ast.AST | None = None
        read: list[ast.AST] = []
        if isinstance(node, ast.AugAssign):
            target, read = node.target, [node.value]
        elif isinstance(node, ast.Assign) and isinstance(
            node.targets[0], ast.Subscript
        ):
            target, read = node.targets[0], [node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            read = [*node.args]
            if node.func.attr.endswith("_"):
                target = node.func.value
            for each in node.keywords:
                if each.arg == "out":
                    target = each.value
        while isinstance(target, (ast.Subscript, ast.Attribute, ast.Call)):
            target = target.func if isinstance(target, ast.Call) else target.value
        if isinstance(target, ast.Name):
            yield target.id, [n.id for n in read if isinstance(n, ast.Name)]


_writes = functools.cache(lambda line: list(writes(line)))


def places(tensor: Any) -> np.ndarray:
    """Where the elements of a tensor are in its memory."""
    found = np.full(tuple(tensor.shape), tensor.storage_offset())
    for dim, step in enumerate(tensor.stride()):
        at = np.arange(tensor.shape[dim]) * step
        found += at.reshape([-1 if d == dim else 1 for d in range(tensor.dim())])
    return found


def reads_what_it_writes(line: str, scope: dict[str, Any], torch: Any) -> bool:
    """Whether a line writes to memory that it also reads, at another place of its loop.

    The order of that loop decides what it reads, and PyTorch refuses but some of these.
    """
    tensors = tensors_of(scope, torch)
    for name, others in _writes(line):
        target = tensors.get(name)
        for other in map(tensors.get, others):
            if target is None or other is None or other is target:
                continue
            memories = (memory_of(t) for t in (target, other))
            if len(set(memories)) > 1:
                continue
            mine, read = places(target), places(other)
            if np.isin(mine, read).any() and not np.array_equal(mine, read):
                return True
    return False


def memory_of(tensor: Any) -> int:
    """Where the memory of a tensor begins; what has no elements is by itself.

    Not by way of `untyped_storage()`: PyTorch's Python object of memory may be one of
    memory that was freed, which it calls an "invalid python storage".
    """
    at = tensor.data_ptr()
    return at - tensor.storage_offset() * tensor.element_size() if at else id(tensor)


def has_history(tensor: Any) -> bool:
    try:
        return tensor.grad_fn is not None
    except RuntimeError:  # a view that may not be used any more
        return True


# The name of a tensor that a statement writes to.
_WRITTEN = re.compile(r"\b(t\d+)(?:\.\w+_\(|\[.*\] = | [-+*/]= )")


def _root_of(tensor: Any) -> Any:
    return tensor if tensor._base is None else tensor._base


def writes_beside(line: str, scope: dict[str, Any], torch: Any) -> bool:
    """Whether a statement writes to memory that NumPy knows, and a history, too."""
    found = _WRITTEN.search(line)
    target = scope.get(found[1]) if found else None
    if not isinstance(target, torch.Tensor):
        return False
    memory, root = memory_of(target), _root_of(target)
    if not any(
        isinstance(v, np.ndarray) and v.ctypes.data == memory for v in scope.values()
    ):
        return False
    return any(
        has_history(t) and memory_of(t) == memory and _root_of(t) is not root
        for t in tensors_of(scope, torch).values()
    )
