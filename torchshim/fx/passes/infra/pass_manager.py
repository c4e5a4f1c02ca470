"""Passes in an order that satisfies constraints, run until nothing changes."""

from __future__ import annotations

import functools
import inspect
from collections import deque
from collections.abc import Callable
from typing import Any

from torchshim.fx.graph_module import GraphModule
from torchshim.fx.passes.infra.pass_base import PassResult
from torchshim.nn.modules.module import Module

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]

_Pass = Callable[..., Any]
_Constraint = Callable[[_Pass, _Pass], bool]


def pass_result_wrapper(fn: _Pass) -> Any:
    """A function that gives a `PassResult`, of one that gives a module or nothing."""
    if fn is None:
        return None

    @functools.wraps(fn)
    def wrapped_fn(gm: Module) -> PassResult | None:
        result = fn(gm)
        if result is None:
            return PassResult(gm, True)
        if isinstance(result, Module):
            return PassResult(result, True)
        return result if isinstance(result, PassResult) else None

    if not inspect.isfunction(fn):
        wrapped_fn.__name__ = type(fn).__name__
    return wrapped_fn


def this_before_that_pass_constraint(this: _Pass, that: _Pass) -> _Constraint:
    """The constraint that one pass is run before another."""

    def depends_on(a: _Pass, b: _Pass) -> bool:
        return a != that or b != this

    return depends_on


def _topological_sort_passes(
    passes: list[_Pass], constraints: list[_Constraint]
) -> list[_Pass]:
    """The passes in an order that satisfies all; RuntimeError if there is none."""
    if not constraints:
        return passes
    later: dict[_Pass, list[_Pass]] = {p: [] for p in passes}
    missing = dict.fromkeys(passes, 0)
    for a in passes:
        for b in passes:
            for _ in (c for c in constraints if a != b and not c(a, b)):
                later[b].append(a)
                missing[a] += 1
    waiting = deque(p for p in passes if not missing[p])
    found: list[_Pass] = []
    while waiting:
        done = waiting.popleft()
        found.append(done)
        for each in later[done]:
            missing[each] -= 1
            if missing[each] == 0:
                waiting.append(each)
    cycle = [p for p in missing if missing[p]]
    if cycle:
        raise RuntimeError(
            f"Circular dependency detected within the following passes: {cycle}"
        )
    return found


def _name(fn: _Pass) -> str:
    return fn.__name__ if inspect.isfunction(fn) else type(fn).__name__


class PassManager:
    """Runs passes one after another, `steps` times or until nothing changes.

    A pass takes a module and gives a `PassResult`. `constraints` say of two passes
    whether the first may come before the second. What goes wrong in a pass is an
    Exception that names it, `run_checks_after_each_pass` also checks (`add_checks`) in
    between, with `suppress_check_failures` errors of checks are none.
    """

    def __init__(
        self,
        passes: list[_Pass] | None = None,
        constraints: list[_Constraint] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.passes = passes or []
        self.constraints = constraints or []
        self.steps = steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False

    def add_pass(self, _pass: _Pass) -> None:
        """Adds a pass."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: _Constraint) -> None:
        """Adds a constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """Raises RuntimeError if the passes are not in order."""
        if self._validated:
            return
        for constraint in self.constraints:
            for i, a in enumerate(self.passes):
                for j, b in enumerate(self.passes[i + 1 :]):
                    if not constraint(a, b):
                        raise RuntimeError(
                            f"pass schedule constraint violated. Expected {a} before "
                            f"{b} but found {a} at index {i} and {b} at index {j} in "
                            "pass list."
                        )
        self._validated = True

    def solve_constraints(self) -> None:
        """Puts the passes in order; RuntimeError if there is none."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable[[Module], None]) -> None:
        """Adds a check of the module; TypeError if it takes anything else, too."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError(
                "PassManager check function should only take in one variable, a module"
            )
        self._check = check

    _check: Callable[[Module], None] | None = None

    def check(self, module: Module) -> None:
        """Raises what the check says."""
        if self._check is None:
            return
        try:
            self._check(module)
        except Exception:
            if not self.suppress_check_failures:
                raise

    def __call__(self, module: Module) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            modified = False
            for i, fn in enumerate(self.passes):
                try:
                    module, one = self._run(fn, module)
                except Exception as error:
                    before = [_name(p) for p in self.passes[:i]]
                    raise Exception(
                        f"An error occurred when running the '{_name(fn)}' pass after "
                        f"the following passes: {before}"
                    ) from error
                modified = modified or one
            changed = changed or modified
            if not modified:
                break
        return PassResult(module, changed)

    def _run(self, fn: _Pass, module: Module) -> tuple[Module, bool]:
        result = fn(module)
        if not hasattr(result, "graph_module"):
            raise TypeError(
                f"The result of the pass {_name(fn)} should be type PassResult."
                "Please wrap it with pass_result_wrapper()"
            )
        if isinstance(result.graph_module, GraphModule):
            result.graph_module.recompile()
        if self.run_checks_after_each_pass:
            self.check(result.graph_module)
        return result.graph_module, result.modified
