"""What Python code in a backward asks of it: its number, which nodes it runs, when."""

from __future__ import annotations

import heapq
import itertools
import weakref
from collections.abc import Iterator
from typing import Any

from torchshim._core.graph import origin
from torchshim._core.node import AccumulateGrad, Node, edge_of
from torchshim._core.walk import walking
from torchshim.autograd.grad_mode import is_multithreading_enabled

_ASKED_LEAF = (
    "A leaf node was passed to _will_engine_execute_node but we are currently running "
    "autograd.grad(). This is currently not supported."
)
_SEVERAL_THREADS = (
    "get_current_graph_task_execution_order expects the current backward to be "
    "executed with multithreading disabled, e.g. by running:\n\n>>> with "
    "torch.autograd.set_multithreading_enabled(False):\n...     "
    "torch.autograd.grad(...)\n"
)

# The numbers of the backwards that were asked for theirs.
_next_task = itertools.count().__next__
_tasks: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


def number() -> int:
    """The number of the running backward, the innermost; -1 outside of one."""
    stack = walking.stack
    if not stack:
        return -1
    if stack[-1] not in _tasks:
        _tasks[stack[-1]] = _next_task()
    return _tasks[stack[-1]]


def current_node() -> Any:
    """The node whose Python code is running; None outside of any."""
    for walk in reversed(walking.stack):
        if walk.current is not None:
            return edge_of(*walk.current)[0]
    return None


def _running(question: str) -> Any:
    stack = walking.stack
    if not stack:
        raise RuntimeError(f"{question} should only be called during the backward pass")
    return stack[-1]


def _places(node: Any) -> Iterator[Any]:
    """Where the gradients of a node's outputs arrive."""
    for slot in node._slots():
        yield origin(node._recording, slot)


def _runs(walk: Any, node: Any) -> bool:
    if isinstance(node, AccumulateGrad):
        leaf = id(node.variable)
        return any((leaf, now) in walk.leaf_places for now in (True, False))
    return any(place in walk.reached for place in _places(node))


def will_execute(node: Any) -> bool:
    """Whether the running backward runs a node: not its root, if it has one alone."""
    if not isinstance(node, Node):
        raise RuntimeError(
            "_will_engine_execute_node expects an grad_fn, but got "
            f"{type(node).__name__}"
        )
    walk = _running("_get_should_execute_nodes")
    if walk.reached is None:
        walk.find_leaves()
    if not _runs(walk, node):
        return False
    if isinstance(node, AccumulateGrad):
        if not walk.accumulate and id(node.variable) in walk.captured:
            raise RuntimeError(_ASKED_LEAF)
        return True
    return len(walk.roots) != 1 or origin(*walk.roots[0]) not in _places(node)


def execution_order() -> list[Any]:
    """The nodes of the running backward, in the order in which it runs them."""
    walk = _running("_current_graph_task_execution_order")
    if is_multithreading_enabled():
        raise RuntimeError(_SEVERAL_THREADS)
    if walk.reached is None:
        walk.find_leaves()
    roots = [edge_of(*place)[0] for place in walk.roots]
    waiting: dict[Any, int] = {}
    below: dict[Any, list[Any]] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in below:
            continue
        below[node] = [
            each
            for each, _ in node.next_functions
            if each is not None and _runs(walk, each)
        ]
        for each in below[node]:
            waiting[each] = waiting.get(each, 0) + 1
        stack += below[node]
    found: list[Any] = []
    ready = [(-node._sequence_nr(), i, node) for i, node in enumerate(roots)]
    heapq.heapify(ready)
    while ready:
        node = heapq.heappop(ready)[2]
        found.append(node)
        for each in below[node]:
            waiting[each] -= 1
            if not waiting[each]:
                entry = -each._sequence_nr(), len(roots) + len(found), each
                heapq.heappush(ready, entry)
    return found
