"""`torch.func` in reverse mode: `grad`, `grad_and_value`, `vjp`, `jacrev`.

Each opens a level that differentiates by itself (`_core/levels.py`). Inside, the
arguments have a history that begins there; what leaves the level keeps only what other
levels, or autograd itself, track.

https://docs.pytorch.org/docs/2.13/func.api.html
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torchshim import _pytree as tree
from torchshim._core import engine, hooks
from torchshim._core.levels import GRAD, Level
from torchshim._core.record import Recorder, local
from torchshim._core.storage import hidden_of, writes_of
from torchshim._derived import fns, public
from torchshim._functions.backward import NOT_REAL, make_grads, zeros_of
from torchshim._functions.pieces import narrow
from torchshim._functions.vmap import vmap, wrapped_like
from torchshim._tensor import Tensor

Argnums = int | tuple[int, ...]


# Choosing arguments -------------------------------------------------------------------


def chosen_arguments(args: tuple[Any, ...], argnums: Any, as_tuple: bool = True) -> Any:
    """The arguments to differentiate by."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(
            f"argnums must be int or Tuple[int, ...], got: {type(argnums)}"
        )
    places = [argument_place(n, len(args)) for n in _numbers(argnums)]
    if isinstance(argnums, tuple):
        if not argnums:
            raise RuntimeError("argnums must be non-empty")
        if len(set(places)) != len(places):
            raise RuntimeError(f"argnums elements must be unique, got {tuple(places)}")
        return tuple(args[i] for i in places)
    return (args[places[0]],) if as_tuple else args[places[0]]


def with_arguments(
    args: tuple[Any, ...], new: tuple[Any, ...], argnums: Any
) -> tuple[Any, ...]:
    """The arguments with the chosen ones replaced."""
    replaced = list(args)
    for n, value in zip(_numbers(argnums), new, strict=True):
        replaced[argument_place(n, len(args))] = value
    return tuple(replaced)


def other_tensors(args: tuple[Any, ...], argnums: Any, *more: Any) -> list[Tensor]:
    """The tensors among the arguments that are not differentiated by, and `more`."""
    chosen = {argument_place(n, len(args)) for n in _numbers(argnums)}
    others = [each for i, each in enumerate(args) if i not in chosen]
    leaves = tree.tree_leaves((others, more))
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


def _numbers(argnums: Any) -> tuple[Any, ...]:
    return (argnums,) if isinstance(argnums, int) else argnums


def argument_place(argnum: Any, count: int) -> int:
    """Which of so many arguments a number names; it may count from the end."""
    if not isinstance(argnum, int):
        raise RuntimeError(f"argnum must be int, got: {type(argnum)}")
    if not -count <= argnum < count:
        raise RuntimeError(f"Got argnum={argnum}, but only {count} positional inputs")
    return argnum % count


# What `autograd.saving` provides: forbids saved-tensor hooks within a block.
without_saved_hooks: list[Callable[[str], Any]] = []
_NO_SAVED_HOOKS = (
    "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. "
    "Please open an issue with your use case."
)


# A level that differentiates ----------------------------------------------------------


@contextlib.contextmanager
def grad_level() -> Iterator[tuple[Recorder, Level]]:
    """A level of `grad` around what runs inside."""
    rec = local.rec
    with without_saved_hooks[0](_NO_SAVED_HOOKS):
        inference, rec.inference = rec.inference, False
        level = rec.open_level(GRAD)
        try:
            yield rec, level
        finally:
            rec.inference = inference
            rec.close_level(level)
            _hand_back(level)


def _started(rec: Recorder, level: Level, args: Any) -> tuple[Any, list[Any]]:
    """The arguments as the level differentiates them, and the same as targets.

    They are other tensors: the function may change its own in place. Their history
    around the level they keep under `no_grad`, too.
    """
    tracking = rec.tracking
    hidden = level.outer_tracking & ~tracking
    if hidden:
        rec.tracking |= hidden
        rec.set_mode()

    def start(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"Thing passed to transform API must be Tensor, got {type(leaf)}"
            )
        if not (leaf.is_floating_point() or leaf.is_complex()):
            raise RuntimeError(
                "only Tensors of floating point dtype can require gradients"
            )
        return rec.start(leaf, level)

    leaves, spec = tree.tree_flatten(args)
    try:
        targets = [start(leaf) for leaf in leaves]
    finally:
        if hidden:
            rec.tracking = tracking
            rec.set_mode()
    twins = [rec.tensor_on(rec.slot_of(t), t._tmeta) for t in targets]
    level.started += zip(twins, leaves, strict=True)
    return spec.unflatten(twins), targets


def _hand_back(level: Level) -> None:
    """Writes to a level's arguments what its function wrote to its own.

    That it may do where autograd does not see it: without grad mode, to an alias.
    """
    rec = local.rec
    changed = [(i, g) for i, g in level.started if writes_of(i) or hidden_of(i)]
    if not changed:
        return
    grad = rec.grad
    rec.set_grad(False)
    try:
        for inside, given in changed:
            value = rec.without_level(inside, level.number)
            given.detach().copy_(value.detach())
    finally:
        rec.set_grad(grad)


def _ended(level: Level, values: Any) -> Any:
    """Tensors without what a level that is over made of them.

    An argument that the function gives back as it is becomes what was given for it.
    """
    rec = local.rec
    given = {id(inside): leaf for inside, leaf in level.started}

    def end(leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            if id(leaf) in given and not (writes_of(leaf) or hidden_of(leaf)):
                return given[id(leaf)]
            return rec.without_level(leaf, level.number)
        raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)}")

    return tree.tree_map(end, values)


def _gradients(
    level: Level,
    outputs: Sequence[Any],
    targets: Sequence[Any],
    cotangents: Sequence[Any] | None,
    retain: bool,
) -> list[Any]:
    """Gradients of what a level tracked; zeros where there is no way."""
    bit = 1 << level.number
    tracked = [i for i, out in enumerate(outputs) if out._tmeta.levels & bit]
    if not tracked:
        return [zeros_of(target) for target in targets]
    roots = [outputs[i] for i in tracked]
    given = [
        _cotangent(outputs[i], None if cotangents is None else cotangents[i])
        for i in tracked
    ]
    rec = local.rec
    tracking = rec.tracking
    rec.tracking = tracking & ~bit
    rec.set_mode()
    # Of a level that began under `no_grad` the roots do not tell what it used.
    create = rec.grad and (
        not level.outer_grad
        or any(
            (t._tmeta.levels or int(t._tmeta.requires_grad)) & rec.tracking
            for t in (*roots, *given)
        )
    )
    retain = retain or create
    if hooks.retaining:
        hooks.move_retained()
    try:
        found = engine.run_backward(
            roots, given, retain, create, targets, False, level.outside
        )
    finally:
        rec.tracking = tracking
        rec.set_mode()
    return [
        zeros_of(target) if each is None else each
        for each, target in zip(found, targets, strict=True)
    ]


def _cotangent(output: Any, given: Any) -> Any:
    """The gradient of an output that backward begins with: in its dtype, or ones."""
    if given is None:
        return engine.ones_like[0](output)
    if given._tmeta.dtype is output._tmeta.dtype:
        return given
    return fns._gradient_cast(given, output._tmeta.dtype)


# grad ---------------------------------------------------------------------------------


def _grad_and_value(
    func: Any, argnums: Any, has_aux: bool, args: Any, kwargs: Any
) -> tuple[Any, Any, Any]:
    with grad_level() as (rec, level):
        diff = chosen_arguments(args, argnums, as_tuple=False)
        inside, targets = _started(rec, level, diff)
        rec.lend(level, other_tensors(args, argnums, kwargs))
        new = inside if isinstance(argnums, tuple) else (inside,)
        output, aux = func(*with_arguments(args, new, argnums), **kwargs), None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError(
                    "grad_and_value(f)(*args): output of function f should be a "
                    "tuple: (output, aux) if has_aux is True"
                )
            output, aux = output
        if not isinstance(output, Tensor):
            raise RuntimeError(
                "grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got "
                f"{type(output)}"
            )
        if output.dim() != 0:
            raise RuntimeError(
                "grad_and_value(f)(*args): Expected f(*args) to return a scalar "
                f"Tensor, got tensor with {output.dim()} dims. Maybe you wanted to "
                "use the vjp or jacrev APIs instead?"
            )
        if output._tmeta.requires_grad and not output._tmeta.dtype.is_floating_point:
            raise RuntimeError(NOT_REAL.format(output._tmeta.dtype))
        rec.slot_of(output)  # a view of what was written to since, within the level
        rec.grad = level.outer_grad
        rec.tracking = level.outer_tracking
        rec.set_mode()
        grads = _gradients(level, [output], targets, None, False)
        found = tree.tree_structure(diff).unflatten(grads)
        return found, _ended(level, output), _ended(level, aux) if has_aux else None


@public(namespaces=("func",))
def grad_and_value(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the gradient of `func`, and its value (with what else it
    returns, under `has_aux`).

    https://docs.pytorch.org/docs/2.13/generated/torch.func.grad_and_value.html

    >>> import torchshim as torch
    >>> torch.func.grad_and_value(lambda x: (x * x).sum())(torch.tensor([1.0, 2.0]))
    (tensor([2., 4.]), tensor(5.))
    """

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found, value, aux = _grad_and_value(func, argnums, has_aux, args, kwargs)
        return (found, (value, aux)) if has_aux else (found, value)

    return wrapped_like(func, wrapper)


@public(namespaces=("func",))
def grad(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the gradient of `func` with respect to some arguments.

    https://docs.pytorch.org/docs/2.13/generated/torch.func.grad.html

    >>> import torchshim as torch
    >>> torch.func.grad(lambda x: x**3)(torch.tensor(2.0))
    tensor(12.)
    >>> torch.func.grad(torch.func.grad(lambda x: x**3))(torch.tensor(3.0))
    tensor(18.)
    """

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found, _, aux = _grad_and_value(func, argnums, has_aux, args, kwargs)
        return (found, aux) if has_aux else found

    return wrapped_like(func, wrapper)


# vjp ----------------------------------------------------------------------------------


def check_outputs(outputs: Sequence[Any], function: str) -> None:
    """Raises for what a differentiated function may not return."""
    if (len(outputs) == 1 and outputs[0] is None) or not outputs:
        raise RuntimeError(
            f"{function}: Expected f to be a function that has non-empty output (got "
            f"output = {outputs})"
        )
    for out in outputs:
        if not isinstance(out, Tensor):
            raise RuntimeError(
                f"{function}: expected f(*primals) to return only tensors, got "
                f"unsupported type {type(out)}"
            )


def _vjp(
    func: Any, primals: tuple[Any, ...], argnums: Any, has_aux: bool
) -> tuple[Any, Any, Any]:
    """(outputs, function from cotangents to gradients, aux)."""
    with grad_level() as (rec, level):
        diff = primals
        if argnums is not None:
            diff = chosen_arguments(primals, argnums, as_tuple=False)
        inside, targets = _started(rec, level, diff)
        if argnums is not None:
            rec.lend(level, other_tensors(primals, argnums))
            new = inside if isinstance(argnums, tuple) else (inside,)
            inside = with_arguments(primals, new, argnums)
        outputs, aux = func(*inside), None
        if has_aux:
            if not (isinstance(outputs, tuple) and len(outputs) == 2):
                raise RuntimeError(
                    "vjp(f, *primals): output of function f should be a tuple: "
                    "(output, aux) if has_aux is True"
                )
            outputs, aux = outputs
            aux = _ended(level, aux)
        flat, spec = tree.tree_flatten(outputs)
        check_outputs(flat, "vjp(f, *primals)")
        # The function may go on to change its outputs in place.
        kept: list[Any] = [rec.tensor_on(rec.slot_of(out), out._tmeta) for out in flat]
        results = _ended(level, outputs)
        for out in flat:
            if not (out.is_floating_point() or out.is_complex()):
                raise RuntimeError(
                    "vjp(f, ...): All outputs of f must be floating-point or complex "
                    f"Tensors, got Tensor with dtype {out.dtype}"
                )
    structure = tree.tree_structure(diff)

    def vjp_fn(
        cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None
    ) -> Any:
        given, given_spec = tree.tree_flatten(cotangents)
        if spec != given_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree "
                "structure of outputs to the function. cotangents: "
                f"{tree.treespec_pprint(given_spec)}, primal output: "
                f"{tree.treespec_pprint(spec)}"
            )
        pairs = zip(kept, given, strict=True)
        tracked = [pair for pair in pairs if pair[0]._tmeta.levels & 1 << level.number]
        make_grads([out for out, _ in tracked], [ct for _, ct in tracked], False)
        now = local.rec
        before = now.grad
        if create_graph is not None:
            now.grad = create_graph
        try:
            found = _gradients(level, kept, targets, given, retain_graph)
        finally:
            now.grad = before
            now.set_mode()
        return structure.unflatten(found)

    # As long as it may be called, no other level may have this one's number.
    rec.held_levels += 1
    weakref.finalize(vjp_fn, _release, rec).atexit = False
    return results, vjp_fn, aux


def _release(rec: Recorder) -> None:
    rec.held_levels -= 1


@public(namespaces=("func",))
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The outputs of `func`, and the function from cotangents to its gradients.

    https://docs.pytorch.org/docs/2.13/generated/torch.func.vjp.html

    >>> import torchshim as torch
    >>> out, vjp_fn = torch.func.vjp(lambda x: x * x, torch.tensor([1.0, 2.0]))
    >>> vjp_fn(torch.ones(2))
    (tensor([2., 4.]),)
    """
    results, vjp_fn, aux = _vjp(func, primals, None, has_aux)
    return (results, vjp_fn, aux) if has_aux else (results, vjp_fn)


# jacrev -------------------------------------------------------------------------------


def refuse_complex(name: str, values: Any, are_inputs: bool) -> None:
    """Raises for complex tensors, which Jacobians are not made of."""
    for i, leaf in enumerate(tree.tree_leaves(values)):
        if isinstance(leaf, Tensor) and leaf.is_complex():
            kind = "inputs" if are_inputs else "outputs"
            raise RuntimeError(
                f"{name}: Expected all {kind} to be real but received complex tensor "
                f"at flattened input idx: {i}"
            )


def standard_basis(tensors: Sequence[Any], start: int, count: int) -> list[Any]:
    """Rows of the identity matrix, each row cut into pieces of the tensors' shapes."""
    made: list[Any] = []
    for tensor in tensors:
        shape = tuple(tensor.shape)
        kind, where = tensor.dtype, tensor.device
        made.append(fns._gradient_basis(shape, count, start, kind, where))
        start -= tensor.numel()
    return made


@public(namespaces=("func",))
def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """A function that gives the Jacobian of `func`, computed row by row.

    For each output and each argument a tensor of both their shapes. `chunk_size`: how
    many rows at a time. https://docs.pytorch.org/docs/2.13/generated/torch.func.jacrev.html

    >>> import torchshim as torch
    >>> torch.func.jacrev(lambda x: x * x)(torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    def wrapper(*args: Any) -> Any:
        refuse_complex("jacrev", args, True)
        output, vjp_fn, aux = _vjp(func, args, argnums, has_aux)
        outputs, output_spec = tree.tree_flatten(output)
        refuse_complex("jacrev", outputs, False)
        primals, primals_spec = tree.tree_flatten(chosen_arguments(args, argnums))
        sizes = [out.numel() for out in outputs]
        total = sum(sizes)
        step = total if chunk_size is None else chunk_size
        parts: list[list[Any]] = []
        for start in range(0, max(total, 1), max(step, 1)):  # of nothing, too
            count = min(step, total - start)
            rows = standard_basis(outputs, start, count)
            if chunk_size == 1:
                if count == 0:
                    raise AssertionError("expected t.size(0) to be 1, got 0")
                single = [fns.squeeze(row, 0) for row in rows]
                found = vjp_fn(output_spec.unflatten(single))
                parts.append([fns.unsqueeze(g, 0) for g in tree.tree_leaves(found)])
            else:
                found = vmap(vjp_fn)(output_spec.unflatten(rows))
                parts.append(tree.tree_leaves(found))
        by_input = [
            column[0] if len(column) == 1 else fns.cat(list(column), 0)
            for column in zip(*parts, strict=True)
        ]
        jacobians: list[Any] = []
        at = 0
        for out, size in zip(outputs, sizes, strict=True):
            row = [
                fns.view(narrow(whole, 0, at, size), (*out.shape, *primal.shape))
                for whole, primal in zip(by_input, primals, strict=True)
            ]
            at += size
            jacobian = primals_spec.unflatten(row)
            jacobians.append(jacobian[0] if isinstance(argnums, int) else jacobian)
        result = output_spec.unflatten(jacobians)
        return (result, aux) if has_aux else result

    return wrapped_like(func, wrapper)
