"""`backward` and `grad`: what they accept, and how they reach the engine."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from torchshim._core import engine, hooks
from torchshim._core.dtypes import type_name
from torchshim._core.levels import VMAP
from torchshim._core.node import AccumulateGrad, GradientEdge, Node
from torchshim._core.record import local
from torchshim._derived import fns
from torchshim._errors import triggered, warn, warn_once
from torchshim._errors import warn_always as warn_always
from torchshim._overrides import handle, overriding
from torchshim._tensor import Tensor

REFERENCE_CYCLE = triggered(
    "Using backward() with create_graph=True will create a reference cycle between the "
    "parameter and its gradient which can cause a memory leak. We recommend using "
    "autograd.grad when creating the graph to avoid this. If you have to use this "
    "function, make sure to reset the .grad fields of your parameters to None after "
    "use to break the cycle and avoid the leak.",
    "torch/csrc/autograd/engine.cpp:1307",
)
NOT_REAL = "grad can be implicitly created only for real scalar outputs but got {}"


def run_plain(root: Tensor, retain_graph: Any) -> None:
    """The usual `loss.backward()`: nothing to check but the root itself."""
    if local.rec.levels:
        _refuse_in_transform()
    if root._view_note is not None:
        local.rec.check_current(root)
    engine.run_backward(
        (root,), (engine.ones_like[0](root),), bool(retain_graph), False, None, True
    )


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Adds the gradients of `tensors` to the `.grad` of the leaves they came from.

    `grad_tensors` are the vectors of the vector-Jacobian products (None for scalars);
    `inputs` restricts which tensors get a gradient.
    https://docs.pytorch.org/docs/2.13/generated/torch.autograd.backward.html

    >>> import torchshim as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> torch.autograd.backward([(x * x).sum(), x.sum()])
    >>> x.grad.tolist()
    [3.0, 5.0]
    """
    _refuse_in_transform()
    if grad_variables is not None:
        warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both "
                "passed to `backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    wanted = () if inputs is None else _inputs(inputs, "backward")
    if inputs is not None and not wanted:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    roots = _sequence(tensors)
    if (found := _overriding(*roots, *wanted)) is not None:
        options = {
            "grad_tensors": grad_tensors,
            "retain_graph": retain_graph,
            "create_graph": create_graph,
            "inputs": None if inputs is None else tuple(wanted),
        }
        handle(backward, found, (tuple(roots),), options)
        return
    given = _given(grad_tensors, len(roots))
    if any(map(_is_composed, (*roots, *wanted))):
        given = _in_values(roots, given)
        roots, wanted = _values(roots), _values(wanted)
    cotangents = make_grads(roots, given, False)
    retain = create_graph if retain_graph is None else retain_graph
    _run(roots, cotangents, retain, create_graph, wanted, True, True)


def _overriding(*tensors: Any) -> list[Any] | None:
    """Who overrides a backward pass; composed tensors do not."""
    return overriding([t for t in tensors if not _is_composed(t)])


def _is_composed(value: Any) -> bool:
    return isinstance(value, Tensor) and value._composed


def _values(tensors: Sequence[Any]) -> list[Any]:
    """Tensors with the values of composed ones in their place: these have the graph."""
    return [t._v if _is_composed(t) else t for t in tensors]


def _in_values(roots: Sequence[Any], given: Sequence[Any]) -> list[Any]:
    """Gradients of roots, of composed ones those of their values."""
    return [
        root._values_of(grad) if grad is not None and _is_composed(root) else grad
        for root, grad in zip(roots, given, strict=True)
    ]


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """The gradients of `outputs` with respect to `inputs`; `.grad` stays as it is.

    A tuple with one tensor for each input (None for one that was not used, if that is
    allowed), or a dict where `inputs` is one.
    https://docs.pytorch.org/docs/2.13/generated/torch.autograd.grad.html

    >>> import torchshim as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> (g,) = torch.autograd.grad(x**2, x, create_graph=True)
    >>> torch.autograd.grad(g, x)[0].item()
    2.0
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when "
            "materialize_grads=True, but got: allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    roots = _sequence(outputs)
    wanted = _inputs(inputs, "grad")
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if (found := _overriding(*roots, *wanted)) is not None:
        options = {
            "grad_outputs": grad_outputs,
            "retain_graph": retain_graph,
            "create_graph": create_graph,
            "only_inputs": only_inputs,
            "allow_unused": allow_unused,
            "is_grads_batched": is_grads_batched,
            "materialize_grads": materialize_grads,
        }
        result = handle(grad, found, (tuple(roots), tuple(wanted)), options)
        return (
            dict(zip(inputs, result, strict=True)) if type(inputs) is dict else result
        )
    if not only_inputs:
        warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). "
            "To accumulate gradient for other parts of the graph, please use "
            "torch.autograd.backward.",
            FutureWarning,
        )
    given = _given(grad_outputs, len(roots))
    asked = wanted
    if any(map(_is_composed, (*roots, *wanted))):
        given = _in_values(roots, given)
        roots, wanted = _values(roots), _values(wanted)
    cotangents = make_grads(roots, given, is_grads_batched)
    retain = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        results = _batched(
            roots, cotangents, retain, create_graph, wanted, allow_unused
        )
    else:
        results = _run(
            roots, cotangents, retain, create_graph, wanted, allow_unused, False
        )
    if materialize_grads:
        results = _materialized(results, wanted, create_graph)
    if asked is not wanted:
        pairs = zip(asked, results, strict=True)
        results = [
            t._gradient(g) if g is not None and _is_composed(t) else g for t, g in pairs
        ]
    if type(inputs) is dict:
        return dict(zip(inputs, results, strict=True))
    return tuple(results)


# The namespace that handlers' errors name.
for _function in (backward, grad):
    _function.__overrides__ = "torch.autograd"


def _refuse_in_transform() -> None:
    if local.rec.transforming():
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, "
            "please use functorch.grad or functorch.vjp instead or call backward() "
            "outside of functorch transforms."
        )


def zeros_of(tensor: Any) -> Any:
    """Zeros of a tensor's shape and dtype."""
    meta = tensor._tmeta
    return fns._gradient_zeros(tuple(meta.shape), meta.dtype, meta.device)


def _batched(
    roots: Sequence[Any],
    cotangents: Sequence[Any],
    retain: Any,
    create: bool,
    wanted: Sequence[Any],
    allow_unused: Any,
) -> list[Any]:
    """One walk for all vectors of the batch: they are a level of `vmap`."""
    # `vmap` is made of functions that use this module.
    from torchshim._functions.vmap import entered, left, vmap_level

    with vmap_level(len(cotangents[0]), "error") as level:
        given = [entered(c, 0, level) for c in cotangents]
        found = _run(roots, given, retain, create, wanted, allow_unused, False)
        return [None if each is None else left(each, 0, level) for each in found]


def _materialized(
    results: Sequence[Any], wanted: Sequence[Any], create: bool
) -> list[Any]:
    full: list[Any] = []
    for result, target in zip(results, wanted, strict=True):
        if result is None:
            if isinstance(target, GradientEdge):
                raise RuntimeError(
                    "materialize_grads cannot be used when the given input is a "
                    "GradientEdge"
                )
            result = zeros_of(target)
            if create:
                result.requires_grad_()
        full.append(result)
    return full


# -- arguments -------------------------------------------------------------------------


def _sequence(tensors: Any) -> tuple[Any, ...]:
    if _is_one(tensors):
        return (tensors,)
    return tuple(tensors)


def _is_one(value: Any) -> bool:
    """Whether a value is no sequence: a tensor, or what overrides functions."""
    one = isinstance(value, (Tensor, GradientEdge))
    return one or hasattr(value, "__torch_function__")


def _inputs(inputs: Any, function: str) -> tuple[Any, ...]:
    if _is_one(inputs):
        return (inputs,)
    if type(inputs) is dict:
        return tuple(inputs.values())
    if isinstance(inputs, Mapping):
        raise TypeError(
            f"`inputs` argument to `{function}()` must be a dict, not "
            f"{type(inputs).__name__}. Other Mapping types are not supported."
        )
    return tuple(inputs)


def _given(grads: Any, length: int) -> tuple[Any, ...]:
    if grads is None:
        return (None,) * length
    if isinstance(grads, Tensor):
        return (grads,)
    return tuple(grads)


def make_grads(
    roots: Sequence[Any], grads: Sequence[Any], batched: bool
) -> tuple[Any, ...]:
    """The vectors that a walk starts with, checked; ones for real scalars."""
    made: list[Any] = []
    for i, (root, grad) in enumerate(zip(roots, grads, strict=False)):
        if isinstance(root, GradientEdge):
            meta = edge_meta(root)
        elif isinstance(root, Tensor):
            meta = root._tmeta
        else:
            raise AssertionError("Expected output to be a torch.Tensor")
        if isinstance(grad, Tensor):
            first: Any = grads[i][0] if batched else grad
            if tuple(first.shape) != tuple(meta.shape):
                # PyTorch's text leaves out another dimension of a batch.
                shown = first.shape[1:] if batched else first.shape
                raise RuntimeError(_mismatch(i, shown, meta.shape, batched))
            if meta.dtype.is_complex != grad.dtype.is_complex:
                raise RuntimeError(
                    "For complex Tensors, both grad_output and output are required to "
                    "have the same dtype. Mismatch in dtype: "
                    f"grad_output[{i}] has a dtype of {grad.dtype} and output[{i}] has "
                    f"a dtype of {meta.dtype}."
                )
            made.append(grad)
        elif grad is None:
            if isinstance(root, Tensor) and not meta.requires_grad:
                made.append(None)
                continue
            if meta.numel != 1:
                raise RuntimeError(
                    "grad can be implicitly created only for scalar outputs"
                )
            if not meta.dtype.is_floating_point:
                raise RuntimeError(NOT_REAL.format(meta.dtype))
            made.append(fns._gradient_ones(tuple(meta.shape), meta.dtype, meta.device))
        else:
            raise TypeError(
                "gradients can be either Tensors or None, but got "
                + type(grad).__name__
            )
    return tuple(made)


def _mismatch(i: int, got: Any, expected: Any, batched: bool) -> str:
    if batched:
        return (
            "If `is_grads_batched=True`, we interpret the first dimension of each "
            "grad_output as the batch dimension. The sizes of the remaining dimensions "
            "are expected to match the shape of corresponding output, but a mismatch "
            f"was detected: grad_output[{i}] has a shape of {got} and output[{i}] has "
            f"a shape of {expected}. If you only want some tensors in `grad_output` to "
            "be considered batched, consider using vmap."
        )
    return (
        f"Mismatch in shape: grad_output[{i}] has a shape of {got} and output[{i}] has "
        f"a shape of {expected}."
    )


def _of_examples(meta: Any) -> bool:
    """Whether a value is mapped by the innermost transform, which hides its history."""
    levels = local.rec.levels
    if not levels or levels[-1].kind != VMAP:
        return False
    return any(number == levels[-1].number for number, _ in meta.batch)


def edge_meta(edge: GradientEdge) -> Any:
    """What is known of the value whose gradient flows through an edge."""
    if isinstance(edge.node, AccumulateGrad):
        return edge.node.variable._tmeta
    node = edge.node
    return node._event.metas[node._slot_of(edge.output_nr) - node._event.slot]


# -- running ---------------------------------------------------------------------------


def _run(
    roots: Sequence[Any],
    cotangents: Sequence[Any],
    retain: Any,
    create: Any,
    wanted: Sequence[Any],
    allow_unused: Any,
    accumulate: bool,
) -> list[Any]:
    if len(roots) != len(cotangents):
        raise RuntimeError(f"got {len(roots)} tensors and {len(cotangents)} gradients")
    retain, create, allow_unused = _flag(retain), _flag(create), _flag(allow_unused)
    starts, vectors = _starts(roots, cotangents)
    targets: list[Any] | None = None
    if wanted:
        targets = [_target(target, accumulate) for target in wanted]
    if accumulate and create:
        warn_once(REFERENCE_CYCLE)
    if hooks.retaining:
        hooks.move_retained()
    results: list[Any] = [None] * len(wanted)
    # A view that requires grad as its base does has no node: it gets no gradient.
    lost = [i for i, t in enumerate(targets or ()) if getattr(t, "_inherits", False)]
    if lost and targets is not None:
        targets = [t for i, t in enumerate(targets) if i not in lost]
    if starts and (targets or not lost):
        results = engine.run_backward(
            starts, vectors, retain, create, targets, accumulate
        )
        for i in lost:
            results.insert(i, None)
    if not allow_unused:
        _check_used(results)
    return results


def _starts(
    roots: Sequence[Any], cotangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """The roots as the engine takes them, and vectors of their devices and dtypes."""
    starts: list[Any] = []
    vectors: list[Any] = []
    for i, (root, vector) in enumerate(zip(roots, cotangents, strict=True)):
        meta = edge_meta(root) if isinstance(root, GradientEdge) else root._tmeta
        if isinstance(root, Tensor) and (
            not meta.requires_grad or root._inherits or _of_examples(meta)
        ):
            if root._view_note is not None:
                local.rec.check_current(root)
            raise RuntimeError(
                f"element {i} of tensors does not require grad and does not have a "
                "grad_fn"
            )
        starts.append(_engine_place(root))
        device = vector._tmeta.device
        if device is not meta.device:
            if vector._tmeta.shape:
                raise RuntimeError(
                    f"invalid gradient at index {i} - expected device {meta.device} "
                    f"but got {device}"
                )
            vector = vector.to(meta.device)
        if vector._tmeta.dtype is not meta.dtype:
            vector = fns._gradient_cast(vector, meta.dtype)
        vectors.append(vector)
    return starts, vectors


def _check_used(results: Sequence[Any]) -> None:
    """Raises where a tensor that is differentiated by had no part in the graph."""
    for i, result in enumerate(results):
        if result is None:
            raise RuntimeError(
                f"The differentiated Tensor at index {i} appears to not have been "
                "used in the graph. Set allow_unused=True if this is the desired "
                "behavior."
            )


def _flag(value: Any) -> bool:
    return bool(operator.index(value))


def _engine_place(edge: Any) -> Any:
    """A tensor or an edge as the engine takes it: a tensor or a place."""
    if isinstance(edge, Tensor):
        if edge._view_note is not None:
            local.rec.check_current(edge)
        edge._unaware = False  # its node is asked for
        return edge
    if isinstance(edge.node, AccumulateGrad):
        return edge.node.variable
    node = edge.node
    if not isinstance(node, Node):
        raise RuntimeError(
            "GradientEdge's first object must be an autograd.graph.Node but got "
            + type_name(type(node))
        )
    return node._recording, node._slot_of(edge.output_nr)


def _target(target: Any, accumulate: bool) -> Any:
    is_tensor: bool = isinstance(target, Tensor)
    if not is_tensor and not isinstance(target, GradientEdge):
        raise RuntimeError(
            "all inputs have to be Tensors or GradientEdges, but got "
            + type_name(type(target))
        )
    if is_tensor:
        if accumulate:
            target.retain_grad()
        if not target._tmeta.requires_grad:
            raise RuntimeError(
                "One of the differentiated Tensors does not require grad"
            )
    return _engine_place(target)
