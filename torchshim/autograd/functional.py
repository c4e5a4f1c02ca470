"""Products with Jacobians and Hessians, and the matrices themselves.

https://docs.pytorch.org/docs/2.13/autograd.html#functional-higher-level-api
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchshim._core.record import local
from torchshim._functions.backward import grad as _grad
from torchshim._functions.backward import zeros_of
from torchshim._functions.func_reverse import standard_basis
from torchshim._tensor import Tensor
from torchshim.autograd._jacobians import (
    check_forward,
    columns_at_once,
    row_by_row,
    rows_at_once,
)
from torchshim.autograd.grad_mode import enable_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = tuple[Any, ...]


# -- arguments -------------------------------------------------------------------------


def _as_tuple_nocheck(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (list, tuple)) else (x,)


def _as_tuple(
    value: Any, argument: str | None = None, function: str | None = None
) -> Any:
    """Whether it was a tuple, and the tuple of tensors; without names the tuple."""
    if argument is None and function is None:
        return _as_tuple_nocheck(value)
    given = isinstance(value, tuple)
    items = value if given else (value,)
    for i, item in enumerate(items):
        if not isinstance(item, Tensor):
            where = f"the value at index {i}" if given else f"the given {argument}"
            raise TypeError(
                f"The {argument} given to {function} must be either a Tensor or a "
                f"tuple of Tensors but {where} has type {type(item)}."
            )
    return given, items


def _grad_preprocess(inputs: Tensors, create_graph: bool, need_graph: bool) -> Tensors:
    """New tensors, to tell the arguments from what the function itself captured."""
    made: list[Any] = []
    for each in inputs:
        if create_graph and each.requires_grad:
            made.append(each.view_as(each))
        else:
            made.append(each.detach().requires_grad_(need_graph))
    return tuple(made)


def _grad_postprocess(results: Any, create_graph: bool) -> Any:
    if create_graph:
        return results
    if isinstance(results[0], Tensor):
        return tuple(r.detach() for r in results)
    return tuple(_grad_postprocess(r, create_graph) for r in results)


def _tuple_postprocess(results: Any, as_tuple: bool | tuple[bool, bool]) -> Any:
    if isinstance(as_tuple, tuple):
        if len(as_tuple) != 2:
            raise AssertionError("Expected to_unpack tuple to have exactly 2 elements")
        if not as_tuple[1]:
            results = tuple(r[0] for r in results)
        return results if as_tuple[0] else results[0]
    return results if as_tuple else results[0]


def _validate_v(v: Tensors, like: Tensors, like_is_tuple: bool) -> None:
    if len(like) != len(v):
        if like_is_tuple:
            raise RuntimeError(
                f"v is a tuple of invalid length: should be {len(like)} but got "
                f"{len(v)}."
            )
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (each, other) in enumerate(zip(v, like, strict=True)):
        if each.size() != other.size():
            where = f"Entry {i} in " if like_is_tuple else ""
            raise RuntimeError(
                f"{where}v has invalid size: should be {other.size()} but got "
                f"{each.size()}."
            )


# -- strict mode -----------------------------------------------------------------------

_INDEPENDENT = {
    "outputs": (
        "Output {0} of the user-provided function does not require gradients. The "
        "outputs must be computed in a differentiable manner from the input when "
        "running in strict mode."
    ),
    "grad_inputs": (
        "The gradient with respect to input {0} is independent of the inputs of the "
        "user-provided function. This is not allowed in strict mode."
    ),
    "jacobian": (
        "While computing the hessian, found that the jacobian of the user-provided "
        "function with respect to input {0} is independent of the input. This is not "
        "allowed in strict mode. You should ensure that your function is twice "
        "differentiable and that the jacobian depends on the inputs (this would be "
        "violated by a linear function for example)."
    ),
    "hessian": (
        "The hessian of the user-provided function with respect to input {0} is "
        "independent of the input. This is not allowed in strict mode. You should "
        "ensure that your function is thrice differentiable and that the hessian "
        "depends on the inputs."
    ),
}
_MISSING = {
    "back": (
        "The output of the user-provided function is independent of input {0}. This is "
        "not allowed in strict mode."
    ),
    "back_trick": (
        "The gradient with respect to the input is independent of entry {0} in the "
        "grad_outputs when using the double backward trick to compute forward mode "
        "gradients. This is not allowed in strict mode."
    ),
    "double_back": (
        "The jacobian of the user-provided function is independent of input {0}. This "
        "is not allowed in strict mode."
    ),
    "double_back_trick": (
        "The hessian of the user-provided function is independent of entry {0} in the "
        "grad_jacobian. This is not allowed in strict mode as it prevents from using "
        "the double backward trick to replace forward mode AD."
    ),
}


def _check_requires_grad(results: Sequence[Any], kind: str, strict: bool) -> None:
    if not strict:
        return
    for i, result in enumerate(results):
        if result is None:
            raise RuntimeError(_MISSING["back"].format(i))
        if not result.requires_grad:
            raise RuntimeError(_INDEPENDENT[kind].format(i))


def _fill_in_zeros(
    grads: Sequence[Any], like: Sequence[Any], strict: bool, create: bool, stage: str
) -> Tensors:
    """Zeros in place of gradients that did not arrive; in strict mode an error."""
    if stage not in _MISSING:
        raise RuntimeError(f"Invalid stage argument '{stage}' to _fill_in_zeros")
    filled: list[Any] = []
    for i, each in enumerate(grads):
        if each is None:
            if strict:
                raise RuntimeError(_MISSING[stage].format(i))
            each = zeros_of(like[i])
        elif strict and create and not each.requires_grad:
            what = "hessian" if "double" in stage else "jacobian"
            raise RuntimeError(
                f"The {what} of the user-provided function is independent of input "
                f"{i}. This is not allowed in strict mode when create_graph=True."
            )
        filled.append(each)
    return tuple(filled)


def _autograd_grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Tensors | None = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
    is_grads_batched: bool = False,
) -> Tensors:
    """As `autograd.grad`, for outputs of which some do not require grad."""
    if not isinstance(outputs, tuple):
        raise AssertionError("Expected outputs to be a tuple")
    if grad_outputs is None:
        grad_outputs = (None,) * len(outputs)
    if not isinstance(grad_outputs, tuple):
        raise AssertionError("Expected grad_outputs to be a tuple")
    if len(outputs) != len(grad_outputs):
        raise AssertionError(
            "Expected outputs and grad_outputs to have the same length, but got "
            f"{len(outputs)} and {len(grad_outputs)}"
        )
    pairs = [
        (o, v)
        for o, v in zip(outputs, grad_outputs, strict=True)
        if o is not None and o.requires_grad
    ]
    if not pairs:
        return (None,) * len(inputs)
    return _grad(
        tuple(o for o, _ in pairs),
        inputs,
        tuple(v for _, v in pairs),
        retain_graph=retain_graph,
        create_graph=create_graph,
        allow_unused=True,
        is_grads_batched=is_grads_batched,
    )


# -- products --------------------------------------------------------------------------


def vjp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The outputs of `func`, and the vector `v` times its Jacobian.

    https://docs.pytorch.org/docs/2.13/generated/torch.autograd.functional.vjp.html

    >>> import torchshim as torch
    >>> vjp(lambda x: x * x, torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))[1]
    tensor([2., 4.])
    """
    with enable_grad():
        inputs_tuple, inputs = _as_tuple(inputs, "inputs", "vjp")
        inputs = _grad_preprocess(inputs, create_graph, True)
        outputs_tuple, outputs = _as_tuple(
            func(*inputs), "outputs of the user-provided function", "vjp"
        )
        _check_requires_grad(outputs, "outputs", strict)
        if v is not None:
            _, v = _as_tuple(v, "v", "vjp")
            v = _grad_preprocess(v, create_graph, False)
            _validate_v(v, outputs, outputs_tuple)
        elif len(outputs) != 1 or outputs[0].nelement() != 1:
            raise RuntimeError(
                "The vector v can only be None if the user-provided function returns a "
                "single Tensor with a single element."
            )
    with _grad_enabled(create_graph):
        found = _autograd_grad(outputs, inputs, v, create_graph)
        product = _fill_in_zeros(found, inputs, strict, create_graph, "back")
    return (
        _tuple_postprocess(_grad_postprocess(outputs, create_graph), outputs_tuple),
        _tuple_postprocess(_grad_postprocess(product, create_graph), inputs_tuple),
    )


def jvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The outputs of `func`, and its Jacobian times the vector `v`.

    https://docs.pytorch.org/docs/2.13/generated/torch.autograd.functional.jvp.html

    >>> import torchshim as torch
    >>> jvp(lambda x: x * x, torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))[1]
    tensor([2., 4.])
    """
    with enable_grad():
        inputs_tuple, inputs = _as_tuple(inputs, "inputs", "jvp")
        inputs = _grad_preprocess(inputs, create_graph, True)
        v = _vector_like(v, inputs, inputs_tuple, create_graph, "jvp")
        outputs_tuple, outputs = _as_tuple(
            func(*inputs), "outputs of the user-provided function", "jvp"
        )
        _check_requires_grad(outputs, "outputs", strict)
        # The vector-Jacobian product is linear in its vector: differentiate by that.
        vectors = tuple(zeros_of(o).requires_grad_() for o in outputs)
        back = _autograd_grad(outputs, inputs, vectors, True)
        _check_requires_grad(back, "grad_inputs", strict)
    with _grad_enabled(create_graph):
        found = _autograd_grad(back, vectors, v, create_graph)
        product = _fill_in_zeros(found, outputs, strict, create_graph, "back_trick")
    return (
        _tuple_postprocess(_grad_postprocess(outputs, create_graph), outputs_tuple),
        _tuple_postprocess(_grad_postprocess(product, create_graph), outputs_tuple),
    )


def _scalar_and_gradient(
    func: Callable[..., Any], inputs: Any, name: str, strict: bool
) -> tuple[bool, Any, Any]:
    outputs_tuple, outputs = _scalar_output(func, inputs, name, strict)
    gradient = _autograd_grad(outputs, inputs, None, True)
    _check_requires_grad(gradient, "jacobian", strict)
    return outputs_tuple, outputs, gradient


def vhp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The output of a scalar `func`, and the vector `v` times its Hessian.

    https://docs.pytorch.org/docs/2.13/generated/torch.autograd.functional.vhp.html

    >>> import torchshim as torch
    >>> vhp(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]), torch.ones(2))[1]
    tensor([ 6., 12.])
    """
    with enable_grad():
        inputs_tuple, inputs = _as_tuple(inputs, "inputs", "vhp")
        inputs = _grad_preprocess(inputs, create_graph, True)
        v = _vector_like(v, inputs, inputs_tuple, create_graph, "vhp")
        outputs_tuple, outputs, jac = _scalar_and_gradient(func, inputs, "vhp", strict)
    with _grad_enabled(create_graph):
        found = _autograd_grad(jac, inputs, v, create_graph)
        product = _fill_in_zeros(found, inputs, strict, create_graph, "double_back")
    return (
        _tuple_postprocess(_grad_postprocess(outputs, create_graph), outputs_tuple),
        _tuple_postprocess(_grad_postprocess(product, create_graph), inputs_tuple),
    )


def hvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The output of a scalar `func`, and its Hessian times the vector `v`.

    https://docs.pytorch.org/docs/2.13/generated/torch.autograd.functional.hvp.html

    >>> import torchshim as torch
    >>> hvp(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]), torch.ones(2))[1]
    tensor([ 6., 12.])
    """
    with enable_grad():
        inputs_tuple, inputs = _as_tuple(inputs, "inputs", "hvp")
        inputs = _grad_preprocess(inputs, create_graph, True)
        v = _vector_like(v, inputs, inputs_tuple, create_graph, "hvp")
        outputs_tuple, outputs, jac = _scalar_and_gradient(func, inputs, "hvp", strict)
        vectors = tuple(zeros_of(each).requires_grad_() for each in inputs)
        double = _autograd_grad(jac, inputs, vectors, True)
        _check_requires_grad(double, "hessian", strict)
    with _grad_enabled(create_graph):
        found = _autograd_grad(double, vectors, v, create_graph)
        product = _fill_in_zeros(
            found, inputs, strict, create_graph, "double_back_trick"
        )
    return (
        _tuple_postprocess(_grad_postprocess(outputs, create_graph), outputs_tuple),
        _tuple_postprocess(_grad_postprocess(product, create_graph), inputs_tuple),
    )


class _grad_enabled(enable_grad):
    """Grad mode as it is, but on where a graph is to be made."""

    def __new__(cls, create_graph: bool) -> Any:
        return object.__new__(cls)

    def __init__(self, create_graph: bool) -> None:
        self.create_graph = create_graph

    def __enter__(self) -> None:
        rec = local.rec
        self.prev = rec.grad
        rec.grad = True if self.create_graph else self.prev
        rec.set_mode()


def _vector_like(
    v: Any, inputs: Tensors, inputs_tuple: bool, create_graph: bool, function: str
) -> Any:
    if v is not None:
        _, v = _as_tuple(v, "v", function)
        v = _grad_preprocess(v, create_graph, False)
        _validate_v(v, inputs, inputs_tuple)
        return v
    if len(inputs) != 1 or inputs[0].nelement() != 1:
        raise RuntimeError(
            "The vector v can only be None if the input to the user-provided function "
            "is a single Tensor with a single element."
        )
    return None


def _scalar_output(
    func: Callable[..., Any], inputs: Tensors, function: str, strict: bool
) -> tuple[bool, Tensors]:
    outputs_tuple, outputs = _as_tuple(
        func(*inputs), "outputs of the user-provided function", function
    )
    _check_requires_grad(outputs, "outputs", strict)
    if outputs_tuple or not isinstance(outputs[0], Tensor):
        raise RuntimeError(
            f"The function given to {function} should return a single Tensor"
        )
    if outputs[0].nelement() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {function} should contain a "
            "single element"
        )
    return outputs_tuple, outputs


# -- matrices --------------------------------------------------------------------------


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of `func`: for each output and input a tensor of both their shapes.

    With `vectorize` all rows (or columns, in "forward-mode") are computed at once.
    https://docs.pytorch.org/docs/2.13/generated/torch.autograd.functional.jacobian.html

    >>> import torchshim as torch
    >>> jacobian(lambda x: x * x, torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If '
            'your function has more outputs than inputs, "forward-mode" tends to be '
            'more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        check_forward(create_graph, strict)
        return _forward_jacobian(func, inputs, vectorize, False)
    with enable_grad():
        inputs_tuple, inputs = _as_tuple(inputs, "inputs", "jacobian")
        inputs = _grad_preprocess(inputs, create_graph, True)
        outputs_tuple, outputs = _as_tuple(
            func(*inputs), "outputs of the user-provided function", "jacobian"
        )
        _check_requires_grad(outputs, "outputs", strict)
        if vectorize:
            if strict:
                raise RuntimeError(
                    "torch.autograd.functional.jacobian: `strict=True` and "
                    "`vectorized=True` are not supported together. Please either set "
                    "`strict=False` or `vectorize=False`."
                )
            result = _grad_postprocess(
                rows_at_once(outputs, inputs, create_graph), create_graph
            )
            return _tuple_postprocess(result, (outputs_tuple, inputs_tuple))
        rows = row_by_row(outputs, inputs, create_graph, strict)
        result = _grad_postprocess(rows, create_graph)
        return _tuple_postprocess(result, (outputs_tuple, inputs_tuple))


def _forward_jacobian(
    func: Callable[..., Any], inputs: Any, vectorize: bool, track: bool
) -> Any:
    """The Jacobian by forward mode, all columns at once."""
    inputs_tuple, inputs = _as_tuple(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is"
            "only implemented for `vectorize=True`."
        )
    if track:
        inputs = _grad_preprocess(inputs, False, True)
    is_tuple: list[bool] = []

    def call(*duals: Any) -> Tensors:
        given, outputs = _as_tuple(func(*duals), "outputs", None)
        is_tuple.append(given)
        return outputs

    return _tuple_postprocess(
        columns_at_once(call, inputs), (is_tuple[0], inputs_tuple)
    )


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a scalar `func`: for each pair of inputs a tensor of both shapes.

    https://docs.pytorch.org/docs/2.13/generated/torch.autograd.functional.hessian.html

    >>> import torchshim as torch
    >>> hessian(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    inputs_tuple, inputs = _as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode".'
        )

    def scalar(*args: Any) -> Any:
        out = func(*args)
        given, outs = _as_tuple(out, "outputs of the user-provided function", "hessian")
        _check_requires_grad(outs, "outputs", strict)
        if given or not isinstance(out, Tensor):
            raise RuntimeError(
                "The function given to hessian should return a single Tensor"
            )
        if out.nelement() != 1:
            raise RuntimeError(
                "The Tensor returned by the function given to hessian should contain a "
                "single element"
            )
        return outs[0].squeeze()

    def first(*args: Any) -> Any:
        jac = jacobian(scalar, args, create_graph=True)
        _check_requires_grad(jac, "jacobian", strict)
        return jac

    if outer_jacobian_strategy == "forward-mode":
        check_forward(create_graph, strict)
        result = _forward_jacobian(first, inputs, vectorize, True)
    else:
        result = jacobian(
            first, inputs, create_graph=create_graph, strict=strict, vectorize=vectorize
        )
    return _tuple_postprocess(result, (inputs_tuple, inputs_tuple))


def _construct_standard_basis_for(
    tensors: Sequence[Any], tensor_numels: Sequence[int]
) -> tuple[Any, ...]:
    """Rows of the identity matrix, each row cut into pieces as long as the tensors."""
    if len(tensors) != len(tensor_numels) or not tensors:
        raise AssertionError("tensors and tensor_numels must be as many, and some")
    total = sum(tensor_numels)
    found = standard_basis(tensors, 0, total)
    return tuple(each.reshape(total, -1) for each in found)
