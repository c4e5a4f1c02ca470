"""Compares every operator with PyTorch on its samples; see `tests.ops.samples`.

`globals().update(area(__name__))` in `test_<area>.py` gives the cases of the operators
declared in `torchshim/_ops/<area>.py`. One case runs all samples of an operator before
anything is read, so that the whole of it is one XLA program.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tests.ops.samples import SAMPLES, Attr, Sample, Tensor
from tests.oracle import Family, attempt, case


def registry() -> dict[str, Any]:
    """The operators of torchshim by name."""
    importlib.import_module("torchshim")
    return importlib.import_module("torchshim._core.op").REGISTRY


def area_of(op: Any) -> str:
    """The name of the file that declares an operator."""
    return op.module.rpartition(".")[2]


def is_public(op: Any) -> bool:
    """Whether users can call it."""
    return bool(op.namespaces or op.method)


def without_samples() -> list[str]:
    """Public operators that nobody wrote samples for."""
    missing = []
    for name, op in registry().items():
        _load(area_of(op))
        if is_public(op) and name not in SAMPLES:
            missing.append(f"{area_of(op)}: {name}")
    return sorted(missing)


def _load(name: str) -> None:
    module = f"tests.ops.samples.{name}"
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise


def area(module_name: str) -> dict[str, Family]:
    """The families of cases of an area's test module: results and errors."""
    name = module_name.rpartition(".test_")[2]
    _load(name)
    results: dict[str, str] = {}
    errors: dict[str, str] = {}
    for key, op in registry().items():
        if area_of(op) == name and key in SAMPLES:
            each = list(SAMPLES[key].make())
            if not all(s.fails for s in each):
                results[key] = key
            if any(s.fails for s in each):
                errors[key] = key
    families: dict[str, Family] = {}
    for run, keys in ((_results, results), (_errors, errors)):
        for family in _families(run, keys, module_name):
            families[f"{family.function.__name__}_{len(families)}"] = family
    return families


def _families(
    run: Callable[..., Any], keys: dict[str, str], module_name: str
) -> Iterator[Family]:
    """One family for each set of options, as the harness wants them."""
    groups: dict[str, tuple[dict[str, Any], dict[str, str]]] = {}
    for key in keys:
        options = SAMPLES[key].options
        groups.setdefault(repr(sorted(options.items())), (options, {}))[1][key] = key
    for options, chosen in groups.values():

        def cases(torch: Any, key: str) -> Any:
            return run(torch, key)

        cases.__name__ = run.__name__.strip("_")
        cases.__module__ = module_name
        cases.__qualname__ = f"{cases.__name__}.{next(iter(chosen))}"
        family = case(**options).over(chosen)(cases)
        assert isinstance(family, Family)
        yield family


# Running one operator's samples -----------------------------------------------------


def _results(torch: Any, key: str) -> dict[str, Any]:
    """Everything that is compared of an operator, by sample and form."""
    op = registry()[key]
    shown: dict[str, Any] = {}
    first = True
    for number, each in enumerate(SAMPLES[key].make()):
        if not each.fails:
            shown[f"{number}: {_text(each)}"] = _forms(torch, op, each, first)
            first = False
    return shown


def _errors(torch: Any, key: str) -> dict[str, Any]:
    """What the failing samples of an operator raise."""
    op = registry()[key]
    shown: dict[str, Any] = {}
    for number, each in enumerate(SAMPLES[key].make()):
        if each.fails:
            args, kwargs = arguments(torch, each, grad=False)
            function = function_of(torch, op)

            def call(
                function: Any = function, args: Any = args, kwargs: Any = kwargs
            ) -> Any:
                results = plain(function(*args, **kwargs))
                return [r.tolist() for r in results]

            shown[f"{number}: {_text(each)}"] = attempt(call)
    return shown


def _forms(torch: Any, op: Any, each: Sample, first: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    function = function_of(torch, op)
    grad = "grad" in each.forms
    args, kwargs = arguments(torch, each, grad)
    result = shown["function"] = attempt(function, *args, **kwargs)
    if isinstance(result, Exception):
        return shown
    if op.view or any(not a.flags.c_contiguous for a in _arrays(each)):
        shown["strides"] = [tuple(r.stride()) for r in plain(result)]
    if grad:
        leaves = [a for a in flat((args, kwargs)) if is_tensor(a) and a.requires_grad]
        shown["grads"] = attempt(gradients, torch, result, leaves, each.second)
    args, kwargs = arguments(torch, each, False)
    on_tensor = bool(args) and is_tensor(args[0])
    if first and op.method and on_tensor and "method" in each.forms:
        method = getattr(args[0], method_name(op))
        shown["method"] = attempt(method, *args[1:], **kwargs)
    if first and "keywords" in each.forms:
        names = [p.name for p in op.params]
        if op.params[-1].role != "Shape" and (op.namespaces or args):
            named = dict(zip(names, args, strict=False))
            if not op.namespaces:  # a method has its tensor already
                function = getattr(named.pop(names[0]), method_name(op))
            shown["keywords"] = attempt(function, **named, **kwargs)
    if first and op.out and op.namespaces and "out" in each.forms:
        outs = [torch.tensor([], dtype=r.dtype) for r in plain(result)]
        given = outs[0] if is_tensor(result) else tuple(outs)
        returned = attempt(function, *args, out=given, **kwargs)
        shown["out"] = returned, given, returned is given
    if op.inplace and on_tensor and "inplace" in each.forms:
        args, kwargs = arguments(torch, each, False)
        method = getattr(args[0], f"{method_name(op)}_")
        returned = attempt(method, *args[1:], **kwargs)
        shown["inplace"] = returned, args[0], returned is args[0]
    return shown


def method_name(op: Any) -> str:
    """What tensors call the method of an operator."""
    return op.method if isinstance(op.method, str) else op.public


def function_of(torch: Any, op: Any) -> Callable[..., Any]:
    """The public function of an operator, or its method.

    AttributeError if there is none, so that nothing is recorded of a wrong name.
    """
    if not op.namespaces:
        return getattr(torch.Tensor, method_name(op))
    found = torch
    for part in op.namespaces[0].split(".")[op.namespaces[0].startswith("torch") :]:
        found = getattr(found, part)
    return getattr(found, op.public)


def gradients(torch: Any, result: Any, leaves: Sequence[Any], second: bool) -> Any:
    """The gradients at the leaves for fixed cotangents, and those of a sum of them."""
    outs = [r for r in plain(result) if r.requires_grad]
    if not outs or not leaves:
        return []
    first = torch.autograd.grad(
        outs,
        leaves,
        [cotangent(torch, r, i) for i, r in enumerate(outs)],
        allow_unused=True,
        create_graph=second,
    )
    if not second:
        return [dense(g) for g in first]
    # How a gradient was computed is not compared, only that it can be differentiated.
    shown = [g if g is None else dense(g.detach()) for g in first]
    live = [
        (g, cotangent(torch, g, 7 + i))
        for i, g in enumerate(first)
        if g is not None and g.requires_grad
    ]
    if not live:
        return [shown]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = torch.autograd.grad(
            [g for g, _ in live], leaves, [c for _, c in live], allow_unused=True
        )
    return [shown, [dense(g) for g in again]]


def dense(grad: Any) -> Any:
    """A gradient with memory: PyTorch has zeros without any."""
    if grad is not None and getattr(grad, "_is_zerotensor", lambda: False)():
        return grad.clone()
    return grad


def cotangent(torch: Any, like: Any, seed: int) -> Any:
    """A fixed tensor of the shape and dtype of another."""
    n = int(np.prod(tuple(like.shape)))
    phase = np.arange(n, dtype=np.float64) + seed
    values = np.cos(phase * 1.7)
    if like.dtype.is_complex:
        values = values + 1j * np.sin(phase * 0.9)
    return torch.tensor(values.reshape(tuple(like.shape)), dtype=like.dtype)


# Making tensors ---------------------------------------------------------------------


def arguments(torch: Any, each: Sample, grad: bool) -> tuple[list[Any], dict[str, Any]]:
    """A sample's arguments with tensors for arrays."""
    made = _make(torch, (each.args, each.kwargs), grad)
    return list(made[0]), made[1]


def _make(torch: Any, value: Any, grad: bool) -> Any:
    if isinstance(value, np.ndarray):
        value = Tensor(value)
    if isinstance(value, Tensor):
        return _tensor(torch, value, grad and value.grad)
    if isinstance(value, Attr):
        found = torch
        for part in value.name.split("."):
            found = getattr(found, part)
        return found
    if type(value) in (list, tuple):
        return type(value)(_make(torch, v, grad) for v in value)
    if isinstance(value, dict):
        return {k: _make(torch, v, grad) for k, v in value.items()}
    return value


def _tensor(torch: Any, spec: Tensor, grad: bool) -> Any:
    array = spec.array
    name = spec.dtype or {"bool": "bool"}.get(str(array.dtype), str(array.dtype))
    dtype = getattr(torch, name)
    grad = grad and (dtype.is_floating_point or dtype.is_complex)
    if array.flags.c_contiguous:
        return torch.tensor(array, dtype=dtype, requires_grad=grad)
    # The same memory order: a permutation of a contiguous tensor.
    order = sorted(range(array.ndim), key=lambda d: -array.strides[d])
    base = torch.tensor(
        np.ascontiguousarray(array.transpose(order)), dtype=dtype, requires_grad=grad
    )
    return base.permute(*(order.index(d) for d in range(array.ndim)))


def is_tensor(value: Any) -> bool:
    return hasattr(value, "requires_grad") and hasattr(value, "dtype")


def flat(value: Any) -> Iterator[Any]:
    """What stands in nested lists, tuples and dicts."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from flat(item)
    else:
        yield value


def plain(result: Any) -> list[Any]:
    """The tensors of a result."""
    return [r for r in flat(result) if is_tensor(r)]


def _arrays(each: Sample) -> list[np.ndarray]:
    found = []
    for value in flat((each.args, each.kwargs)):
        if isinstance(value, Tensor):
            value = value.array
        if isinstance(value, np.ndarray):
            found.append(value)
    return found


def _text(each: Sample) -> str:
    """A sample as it is called, in short."""
    parts = [_short(a) for a in each.args]
    parts += [f"{k}={_short(v)}" for k, v in each.kwargs.items()]
    return f"({', '.join(parts)})"


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_short, value))}]"
    return repr(value)
