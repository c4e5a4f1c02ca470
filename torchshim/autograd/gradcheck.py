"""Checks of gradients against finite differences.

https://docs.pytorch.org/docs/2.13/autograd.html#numerical-gradient-checking
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchshim import _warnings as warnings
from torchshim._core import dtypes
from torchshim._core.meta import Size
from torchshim._derived import fns
from torchshim._functions.backward import grad as _grad
from torchshim._functions.backward import zeros_of
from torchshim._functions.creation import empty, placed
from torchshim._tensor import Tensor, from_array
from torchshim.autograd._gradcheck_fast import compare_fast, compare_forward_fast
from torchshim.autograd._gradcheck_forward import (
    GradcheckError,
    check_batched,
    check_forward,
    check_undefined_tangents,
)
from torchshim.autograd._gradcheck_sparse import check_outputs, of_values
from torchshim.autograd._old_jacobians import (
    _get_numerical_jacobian as _get_numerical_jacobian,
)
from torchshim.autograd._old_jacobians import (
    get_analytical_jacobian as get_analytical_jacobian,
)
from torchshim.autograd._old_jacobians import (
    get_numerical_jacobian as get_numerical_jacobian,
)
from torchshim.autograd.function import Function
from torchshim.autograd.functional import _as_tuple_nocheck as _as_tuple
from torchshim.autograd.grad_mode import no_grad

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

_NONDETERMINISTIC = (
    "\n\nNOTE: If your op relies on non-deterministic operations i.e., it is listed "
    "here:\nhttps://pytorch.org/docs/stable/generated/"
    "torch.use_deterministic_algorithms.html\nthis failure might be expected.\n\nIf "
    "you are adding a new operator, please file an issue and then use one of the\n"
    "workarounds. The workaround depends on how your test invokes gradcheck/"
    "gradgradcheck.\nIf the test\n- manually invokes gradcheck/gradgradcheck, then "
    "call gradcheck/gradgradcheck\n  with `nondet_tol=<tol>` as a keyword argument.\n- "
    "is OpInfo-based (e.g., in test_ops_gradients.py), then modify the OpInfo for the "
    "test\n  to have `gradcheck_nondet_tol=<tol>`.\n- is a Module test (e.g., in "
    "common_nn.py), then modify the corresponding\n  module_test entry to have "
    "`gradcheck_nondet_tol=<tol>`\n"
)


class _UndefinedGrad(Function):
    """Passes a tensor on; its backward gives no gradient."""

    @staticmethod
    def forward(ctx: Any, value: Any) -> Any:
        ctx.set_materialize_grads(False)
        return value.detach().clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of `func` agree with finite differences.

    Raises `GradcheckError` where they do not, unless `raise_exception` is False. In
    fast mode random projections of the Jacobians are compared. Of sparse inputs the
    values that they have are varied: `masked=True` says so.
    https://docs.pytorch.org/docs/2.13/generated/torch.autograd.gradcheck.gradcheck.html

    >>> import torchshim as torch
    >>> x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    >>> gradcheck(lambda x: x * x, x)
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    if check_batched_grad and not check_backward_ad:
        raise AssertionError(
            "Setting check_batched_grad=True requires check_backward_ad to be True"
        )
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError(
            "Setting check_batched_forward_grad=True requires check_forward_ad to be "
            "True"
        )
    func, given = of_values(func, _as_tuple(inputs), masked)
    try:
        check = _Check(func, given, eps, atol, rtol, nondet_tol)
        if check_backward_ad or not (fast_mode or check.outputs):
            check.compare(fast_mode, check_grad_dtypes)
            if not check.outputs:
                return True
        if check_forward_ad:
            (compare_forward_fast if fast_mode else check_forward)(check)
            if check_undefined_grad:
                check_undefined_tangents(check)
            if check_batched_forward_grad:
                check_batched(check)
        if not check_backward_ad:
            return True
        if check_batched_grad:
            check.batched()
        check.scaled()
        if check_undefined_grad:
            check.undefined()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check_alike(before: np.ndarray, after: np.ndarray, where: str) -> None:
    """Whether an output is alike on both sides of the input."""
    for what, one, other in (
        ("shape", Size(before.shape), Size(after.shape)),
        ("dtype", f"torch.{before.dtype}", f"torch.{after.dtype}"),
    ):
        if one != other:
            raise AssertionError(
                f"Expected `func` to return outputs with the same {what} when inputs "
                f"are perturbed {where}, but got: {what}s {one} and {other}."
            )


def _differentiable_outputs(x: Any) -> tuple[Any, ...]:
    return tuple(o for o in _as_tuple(x) if o.requires_grad)


class _Check:
    """One function at one point."""

    def __init__(
        self,
        func: Callable[..., Any],
        inputs: tuple[Any, ...],
        eps: float,
        atol: float,
        rtol: float,
        nondet_tol: float,
    ) -> None:
        self.func = func
        self.inputs = inputs
        self.eps, self.atol, self.rtol = eps, atol, rtol
        self.nondet_tol = nondet_tol
        self.where = [
            i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad
        ]
        self._check_inputs()
        self.all_outputs = _as_tuple(func(*inputs))
        check_outputs(self.all_outputs)
        self.outputs = tuple(o for o in self.all_outputs if o.requires_grad)
        # Those of all outputs that are looked at, and that forward mode looks at.
        self.chosen = [
            k
            for k, o in enumerate(self.all_outputs)
            if o.requires_grad or not self.outputs
        ]
        self.smooth = [
            k
            for k, o in enumerate(self.all_outputs)
            if o.is_floating_point() or o.is_complex()
        ]

    def _check_inputs(self) -> None:
        for i in self.where:
            x = self.inputs[i]
            if x.dtype.name not in ("float64", "complex128"):
                warnings.warn(
                    f"Input #{i} requires gradient and is not a double precision "
                    "floating point or complex. This check will likely fail if all the "
                    "inputs are not of double precision floating point or complex. ",
                    stacklevel=4,
                )
            if any(
                s == 0 and n > 1
                for s, n in zip(x._tmeta.strides, x._tmeta.shape, strict=True)
            ):
                raise RuntimeError(
                    f"The {i}th input has a dimension with stride 0. gradcheck only "
                    "supports inputs that are non-overlapping to be able to compute "
                    "the numerical gradients correctly. You should call .contiguous on "
                    "the input before passing it to gradcheck."
                )
        if not self.where:
            raise ValueError(
                "gradcheck expects at least one input tensor to require gradient, but "
                "none of them have requires_grad=True."
            )

    # -- numerical ---------------------------------------------------------------------

    def evaluate(
        self, i: int, value: np.ndarray, which: Sequence[int]
    ) -> list[np.ndarray]:
        """Some of the outputs with another value of one input.

        The input itself has it meanwhile, as the function may know the tensor
        otherwise than by its argument: a module's parameter.
        """
        x = self.inputs[i]
        before = x.data
        x.data = placed(value, x.device)
        try:
            outs = _as_tuple(self.func(*self.inputs))
            with no_grad():
                return [np.array(outs[k].detach()._host()) for k in which]
        finally:
            x.data = before

    def numerical(self, i: int, which: Sequence[int]) -> list[np.ndarray]:
        """The Jacobian of outputs by one input (real and imaginary steps)."""
        base = np.array(self.inputs[i].detach()._host())
        steps = [1.0, 1j] if np.iscomplexobj(base) else [1.0]
        tables: list[np.ndarray] = []
        for k in which:
            made = self.all_outputs[k]
            kind = np.result_type(made.dtype.np, np.real(base))
            tables.append(np.zeros((len(steps), base.size, made.numel()), kind))
        for at in range(base.size):
            for s, step in enumerate(steps):
                moved = np.zeros(base.size, base.dtype)
                moved[at] = step
                index = tuple(map(int, np.unravel_index(at, base.shape)))
                found = self.moved(i, moved, which, f"on index {index} ")
                for table, move in zip(tables, found, strict=True):
                    table[s, at] = move
        return tables

    def moved(
        self, i: int, direction: np.ndarray, which: Sequence[int], where: str = ""
    ) -> list[np.ndarray]:
        """The outputs' derivatives along a direction of one input, by differences.

        AssertionError where they change their shape or dtype, which names `where`.
        """
        at = np.array(self.inputs[i].detach()._host())
        step = (self.eps * direction).reshape(at.shape)
        ends = [
            self.evaluate(i, (at + sign * step).astype(at.dtype), which)
            for sign in (-1, 1)
        ]
        for before, after in zip(*ends, strict=True):
            _check_alike(before, after, f"{where}by {self.eps}")
        return [
            ((b - a) / (2 * self.eps)).reshape(-1) for a, b in zip(*ends, strict=True)
        ]

    # -- analytical --------------------------------------------------------------------

    def pulled(self, output: Any, vector: Any) -> list[np.ndarray]:
        """Vector-Jacobian products with every checked input."""
        targets = [self.inputs[i] for i in self.where]
        grads = _grad(output, targets, vector, retain_graph=True, allow_unused=True)
        result = []
        for g, x in zip(grads, targets, strict=True):
            if g is None:
                result.append(np.zeros(tuple(x.shape), x.dtype.np))
                continue
            if tuple(g.shape) != tuple(x.shape):
                raise GradcheckError("Analytical gradient has incorrect size")
            result.append(np.array(g.detach().to_dense()._host()))
        return result

    def pulled_twice(self, output: Any, vector: Any) -> list[np.ndarray]:
        """As `pulled`; raises if another time gives something else."""
        rows, again = (self.pulled(output, vector) for _ in range(2))
        for a, b in zip(rows, again, strict=True):
            if a.size and np.abs(a - b).max() > self.nondet_tol:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input "
                    "and grad_output multiple times gives different values, although "
                    "analytical gradient matches numerical gradient.The tolerance for "
                    f"nondeterminism was {self.nondet_tol}." + _NONDETERMINISTIC
                )
        return rows

    def analytical(self, output: Any, unit: complex) -> list[np.ndarray]:
        """Rows of gradients: input -> (elements of the input, of the output)."""
        shape = tuple(output.shape)
        size = output.numel()
        tables: list[np.ndarray] | None = None
        for at in range(size):
            vector = np.zeros(size, output.dtype.np)
            vector[at] = unit
            moved = placed(vector.reshape(shape), output.device)
            rows = self.pulled_twice(output, moved)
            if tables is None:
                tables = [np.zeros((r.size, size), r.dtype) for r in rows]
            for table, row in zip(tables, rows, strict=True):
                table[:, at] = row.reshape(-1)
        if tables is None:
            tables = [
                np.zeros((self.inputs[i].numel(), 0), self.inputs[i].dtype.np)
                for i in self.where
            ]
        return tables

    # -- checks ------------------------------------------------------------------------

    def compare(self, fast: bool, check_dtypes: bool) -> None:
        if fast:
            compare_fast(self)
        else:
            self.compare_slowly()
        if check_dtypes:
            for output in self.outputs:
                self.check_dtypes(output)

    def compare_slowly(self) -> None:
        numerical = [self.numerical(i, self.chosen) for i in self.where]
        if not self.outputs:
            continuous = [
                o.is_floating_point() or o.is_complex() for o in self.all_outputs
            ]
            for tables in numerical:
                if any(
                    smooth and np.abs(table).max(initial=0) > 0
                    for smooth, table in zip(continuous, tables, strict=True)
                ):
                    raise GradcheckError(
                        "Numerical gradient for function expected to be zero"
                    )
            return
        for k, output in enumerate(self.outputs):
            is_complex = output.dtype.is_complex
            for imaginary in (True, False) if is_complex else (False,):
                unit = 1j if imaginary else 1.0
                analytical = self.analytical(output, unit)
                for j, (a, tables) in enumerate(
                    zip(analytical, numerical, strict=True)
                ):
                    n = self.flat(tables[k], imaginary)
                    if not np.allclose(a, n, self.rtol, self.atol):
                        n = from_array(np.ascontiguousarray(n.astype(a.dtype)))
                        shown = from_array(a), n, k, j, is_complex, imaginary
                        raise GradcheckError(self.message(*shown))

    @staticmethod
    def flat(table: np.ndarray, imaginary: bool) -> np.ndarray:
        """PyTorch's gradient of a complex input: d/dre + i d/dim."""
        part = np.imag(table) if imaginary else np.real(table)
        return part[0] + 1j * part[1] if len(part) == 2 else part[0]

    @staticmethod
    def message(
        a: Any, n: Any, k: int, j: int, is_complex: bool, imaginary: bool
    ) -> str:
        part = "imaginary" if imaginary else "real"
        prefix = (
            f"While considering the {part} part of complex outputs only, "
            if is_complex
            else ""
        )
        return (
            f"{prefix}Jacobian mismatch for output {k} with respect to input {j},\n"
            f"numerical:{n}\nanalytical:{a}\n"
        )

    def check_dtypes(self, output: Any) -> None:
        targets = [self.inputs[i] for i in self.where]
        vector = fns.ones_like(output)
        grads = _grad(output, targets, vector, retain_graph=True, allow_unused=True)
        for g, x in zip(grads, targets, strict=True):
            if g is not None and g.dtype is not x.dtype:
                raise GradcheckError("Gradient has dtype mismatch")

    def batched(self) -> None:
        targets = [self.inputs[i] for i in self.where]
        for k, output in enumerate(self.outputs):
            vectors = [fns.ones_like(output) * (0.5 + 0.25 * row) for row in range(2)]
            single = [
                _grad(output, targets, v, retain_graph=True, allow_unused=True)
                for v in vectors
            ]
            together = _grad(
                output,
                targets,
                fns.stack(vectors),
                retain_graph=True,
                allow_unused=True,
                is_grads_batched=True,
            )
            for j, (rows, both) in enumerate(
                zip(zip(*single, strict=True), together, strict=True)
            ):
                if both is None:
                    continue
                if not np.allclose(
                    np.stack([r._host() for r in rows]), both.detach()._host()
                ):
                    raise GradcheckError(
                        f"For output {k} and input {j}: batched gradients differ"
                    )

    def scaled(self) -> None:
        """The gradient of a zero vector has to be zero."""
        if not self.outputs:
            return
        targets = [self.inputs[i] for i in self.where]
        zeros = [zeros_of(o) for o in self.outputs]
        grads = _grad(
            self.outputs, targets, zeros, retain_graph=True, allow_unused=True
        )
        for g, x in zip(grads, targets, strict=True):
            if g is None:
                continue
            if g.layout is not x.layout:
                raise GradcheckError(
                    f"grad is incorrect layout ({g.layout} is not {x.layout})"
                )
            if np.any(np.array(g.detach()._host()) != 0):
                raise GradcheckError("backward not multiplied by grad_output")
            if g.dtype is not x.dtype:
                raise GradcheckError("grad is incorrect type")
            if g.size() != x.size():
                raise GradcheckError("grad is incorrect size")

    def undefined(self) -> None:
        """Gradients that never arrive have to be taken for zeros."""
        count = len(self.outputs)
        if not count:
            return
        choices = [range(count)] + ([[k] for k in range(count)] if count > 1 else [])
        for chosen in choices:
            outs = _differentiable_outputs(self.func(*self.inputs))
            outs = tuple(
                _UndefinedGrad.apply(o) if k in chosen else o
                for k, o in enumerate(outs)
            )
            self.check_undefined(outs)

    def check_undefined(self, outs: Sequence[Any]) -> None:
        targets = [self.inputs[i] for i in self.where]
        zeros = [zeros_of(o) for o in outs]
        text = (
            "Backwards compatibility: New undefined gradient support checking feature "
            "is enabled by default, but it may break existing callers of this "
            "function. If this is true for you, you can call this function with "
            '"check_undefined_grad=False" to disable the feature'
        )
        try:
            grads = _grad(outs, targets, zeros, allow_unused=True)
        except RuntimeError as error:
            warnings.warn(text, stacklevel=2)
            raise GradcheckError(
                "Expected backward function to handle undefined output grads. Please "
                'look at "Notes about undefined output gradients" in '
                '"tools/autograd/derivatives.yaml"'
            ) from error
        for g in grads:
            if g is not None and np.any(np.array(g.detach()._host()) != 0):
                warnings.warn(text, stacklevel=2)
                raise GradcheckError(
                    "Expected all input grads to be undefined or zero when all output "
                    'grads are undefined or zero. Please look at "Notes about '
                    'undefined output gradients" in "tools/autograd/derivatives.yaml"'
                )


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Whether the gradients of the gradients of `func` agree with finite differences.

    https://docs.pytorch.org/docs/2.13/generated/torch.autograd.gradcheck.gradgradcheck.html

    >>> import torchshim as torch
    >>> x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    >>> gradgradcheck(lambda x: x**3, x)
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError(
            "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be "
            "True"
        )
    for name, wanted in (
        ("check_undefined_grad", check_undefined_grad),
        ("check_batched_grad", check_batched_grad),
    ):
        if wanted and not check_rev_over_rev:
            raise AssertionError(
                f"Setting {name}=True requires check_rev_over_rev to be True"
            )
    given = _as_tuple(inputs)
    if grad_outputs is None:
        vectors = tuple(
            _vector(o, gen_non_contig_grad_outputs)
            for o in _differentiable_outputs(func(*given))
        )
    else:
        vectors = _as_tuple(grad_outputs)
    count = len(vectors)
    checked = {
        i for i, x in enumerate(given) if isinstance(x, Tensor) and x.requires_grad
    }
    kept = {i for i, x in enumerate(vectors) if x.requires_grad}

    def first(*args: Any) -> tuple[Any, ...]:
        points = tuple(
            x.requires_grad_() if i in checked else x
            for i, x in enumerate(args[:-count])
        )
        outputs = _differentiable_outputs(func(*points))
        directions = tuple(
            x.requires_grad_() if i in kept else x for i, x in enumerate(args[-count:])
        )
        grads = _grad(
            outputs,
            tuple(x for i, x in enumerate(points) if i in checked),
            directions,
            create_graph=True,
            allow_unused=True,
        )
        return tuple(g for g in grads if g is not None)

    return gradcheck(
        first,
        given + vectors,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        fast_mode=fast_mode,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        masked=masked,
    )


def _vector(output: Any, scattered: bool) -> Any:
    """Random numbers between -1 and 1, from PyTorch's generator in its order."""
    dtype = output.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        dtype = dtypes.float64
    shape = tuple(output.shape)
    spread = scattered and output.numel() > 1
    if spread:
        shape = (*shape[:-1], 2 * shape[-1])
    vector = empty(shape, dtype=dtype, device=output.device)
    parts = fns.view_as_real(vector) if dtype.is_complex else vector
    parts.uniform_(-1, 1)
    if spread:
        vector = vector[..., 1::2]
    return vector.detach().requires_grad_()
