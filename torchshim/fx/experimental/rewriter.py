"""Tracing of code that is rewritten first: assertions become calls."""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import Any

import torchshim
from torchshim.fx._symbolic_trace import Tracer
from torchshim.fx.annotate import annotate
from torchshim.fx.graph import Graph
from torchshim.nn.modules.module import Module

# What rewritten code calls, by names that no program has.
_CALLED = {"_fx_assert": torchshim._assert, "_fx_annotate": annotate}


class AST_Rewriter(ast.NodeTransformer):
    """Rewrites functions: `assert x` is `torch._assert(x, "")`, and `y: T = x` a call.

    That call, `annotate(x, T)`, gives the node the type. A subclass may have methods
    for more statements, as a `NodeTransformer` has.
    """

    def rewrite(self, fn: FunctionType) -> FunctionType:
        """The function with its source rewritten; OSError where that is not known."""
        source, inner = inspect.getsource(fn), False
        if source[0].isspace():  # texts in it may not be, so that it cannot be moved
            source, inner = f"if True:\n{source}", True
        defined: Any = ast.parse(source).body[0]
        defined = defined.body[0] if inner else defined
        ast.increment_lineno(defined, fn.__code__.co_firstlineno - 1 - inner)
        if not isinstance(defined, ast.FunctionDef):
            return fn  # a lambda has no statements
        # Decorators were called already, and defaults are the function's.
        defined.decorator_list = []
        defined = self.visit(defined)
        free = [*fn.__code__.co_freevars, *_CALLED]
        outer = ast.parse(f"def outer({', '.join(free)}):\n    return 0")
        outer.body[0].body.insert(0, defined)  # type: ignore[attr-defined]
        file = fn.__code__.co_filename
        made = compile(ast.fix_missing_locations(outer), file, "exec")
        code = _inner(_inner(made, "outer"), defined.name)
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        cells |= {name: CellType(value) for name, value in _CALLED.items()}
        rewritten = FunctionType(
            code,
            fn.__globals__,
            fn.__name__,
            fn.__defaults__,
            tuple(cells[name] for name in code.co_freevars),
        )
        rewritten.__kwdefaults__ = copy.copy(fn.__kwdefaults__)
        rewritten.__annotations__ = dict(fn.__annotations__)
        rewritten.__doc__, rewritten.__module__ = fn.__doc__, fn.__module__
        rewritten.__qualname__ = fn.__qualname__
        rewritten.__dict__.update(fn.__dict__)
        return rewritten

    def visit_Assert(self, node: ast.Assert) -> ast.Expr:
        """The call in the place of an assertion."""
        message = node.msg or ast.Constant(value="")
        return ast.copy_location(
            ast.Expr(_call("_fx_assert", node.test, message)), node
        )

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """The assignment in the place of one with a type."""
        if node.value is None:
            return node
        value = _call("_fx_annotate", node.value, node.annotation)
        return ast.copy_location(ast.Assign([node.target], value), node)


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def _inner(code: CodeType, name: str) -> CodeType:
    """The code of a function that is defined within another."""
    found = (c for c in code.co_consts if isinstance(c, CodeType))
    return next(c for c in found if c.co_name == name)


class RewritingTracer(Tracer):
    """Traces what `AST_Rewriter` makes of a function, or of a module's forward.

    The forwards of submodules stay as they are.

    >>> import torchshim as torch
    >>> def double(x):
    ...     assert x.sum() > 0, "negative"
    ...     return x * 2
    >>> graph = RewritingTracer().trace(double)
    >>> [node.name for node in graph.nodes]
    ['x', 'sum_1', 'gt', '_assert', 'mul', 'output']
    """

    def trace(
        self,
        root: Module | Callable[..., Any],
        concrete_args: dict[str, Any] | tuple[Any, ...] | None = None,
    ) -> Graph:
        """The graph of the rewritten program, as `Tracer.trace` gives it."""
        return super().trace(_rewrite(root), concrete_args)


def _rewrite(fn: Any) -> Any:
    if not isinstance(fn, Module):
        return AST_Rewriter().rewrite(fn)
    method = fn.forward

    class RewrittenModule(Module):
        forward = AST_Rewriter().rewrite(method.__func__)

    made = RewrittenModule()
    made.__dict__.update({name: copy.copy(v) for name, v in vars(fn).items()})
    return made
