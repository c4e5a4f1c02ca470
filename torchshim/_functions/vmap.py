"""`torch.vmap`: a function of one example made a function of a batch.

The examples' dimension becomes a level (`_core/levels.py`): inside, each tensor has the
shape of one example, and what is recorded is `jax.vmap` of the operators.

https://docs.pytorch.org/docs/2.13/generated/torch.vmap.html
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from torchshim import _pytree as tree
from torchshim._core.levels import VMAP, Level
from torchshim._core.random import default_generator
from torchshim._core.record import local
from torchshim._derived import NEVER, fns, public
from torchshim._functions.pieces import chunk, narrow
from torchshim._functions.reshape_in_place import reshape_given
from torchshim._overrides import handler_of
from torchshim._tensor import Tensor


@contextlib.contextmanager
def vmap_level(size: int, randomness: str) -> Iterator[Level]:
    """A level of `vmap` around what runs inside."""
    rec = local.rec
    level = rec.open_level(VMAP, size, randomness)
    try:
        yield level
    finally:
        rec.close_level(level)


def has_level(tensor: Tensor, level: Level) -> bool:
    """Whether a tensor differs from example to example of a level."""
    return any(number == level.number for number, _ in tensor._tmeta.batch)


def _plain(tensor: Tensor) -> Tensor:
    """A tensor, or that which one of a subclass shows: levels know no others."""
    if handler_of(type(tensor)) is None or tensor._composed:
        return tensor
    return tensor.as_subclass(Tensor)


def entered(tensor: Tensor, dim: int, level: Level) -> Tensor:
    """A tensor with `dim` made the level: a view, of a copy where NumPy shares it."""
    tensor = _plain(tensor)
    storage = tensor._storage
    if storage is not None and storage.shared is not None:
        # Views of memory that numpy shares are made without being recorded.
        tensor = fns._gradient_copy(tensor)
    return fns._vmap_enter(tensor, dim, level.number)


def level_at(depth: int) -> Level:
    """The `vmap` in progress that so many transforms are around, itself included."""
    for level in local.rec.levels:
        if level.depth == depth and level.kind == VMAP:
            return level
    raise RuntimeError(f"no vmap is in progress at level {depth}")


def note_given(
    level: Level, given: Sequence[Any], leaves: Sequence[Any], dims: Sequence[Any]
) -> None:
    """Notes what the arguments of a mapped function are views of."""
    for each, leaf, dim in zip(given, leaves, dims, strict=True):
        if dim is not None and each._storage is not None:
            if each._storage is leaf._storage:
                level.given.append((each, leaf, dim % leaf.dim()))


def argument_behind(tensor: Tensor, level: Level) -> tuple[Tensor, int]:
    """What holds the examples of a tensor of the level, and in which dimension.

    Of an argument the tensor that was given.
    """
    for each, leaf, dim in level.given:
        if each is tensor:
            return cast(Tensor, leaf), dim
    return fns._vmap_leave(tensor, 0, level.number), 0


def left(tensor: Tensor, dim: int, level: Level) -> Tensor:
    """A tensor of the level with its examples in `dim`."""
    ndim = tensor.dim() + 1
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, "
            f"{ndim - 1}], but got {dim})"
        )
    if has_level(tensor, level):
        for each, leaf, mapped in level.given:
            path = each._path
            if tensor._storage is each._storage and tensor._path[: len(path)] == path:
                # In elements: of real parts there are twice as many.
                apart = leaf._tmeta.strides[mapped] * leaf._tmeta.dtype.itemsize
                apart //= tensor._tmeta.dtype.itemsize
                number, size = level.number, level.size
                return fns._vmap_show(tensor, dim % ndim, number, size, apart)
        return fns._vmap_leave(tensor, dim % ndim, level.number)
    shape = list(tensor.shape)
    shape.insert(dim % ndim, level.size)
    return fns.expand(fns.unsqueeze(tensor, dim), shape)


def name_of(func: Any) -> str:
    """What error texts call a function."""
    if hasattr(func, "__name__"):
        return func.__name__
    if isinstance(func, functools.partial):
        return f"functools.partial({name_of(func.func)}, ...)"
    return repr(func)


def wrapped_like(func: Any, wrapper: Callable[..., Any]) -> Callable[..., Any]:
    """The wrapper under the name of the function it transforms."""
    return functools.wraps(func)(wrapper)


# Arguments ----------------------------------------------------------------------------


def _check_randomness(randomness: str) -> None:
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. "
            f"Got {randomness}"
        )


def _check_out_dims(out_dims: Any, func: Any) -> None:
    for leaf in tree.tree_leaves(out_dims):
        if leaf is not None and not isinstance(leaf, int):
            raise ValueError(
                f"vmap({name_of(func)}, ..., out_dims={out_dims}): `out_dims` must be "
                "an int, None or a python collection of ints representing where in "
                "the outputs the vmapped dimension should appear."
            )


def _batch_size(dims: Sequence[Any], leaves: Sequence[Any]) -> int:
    sizes = [
        leaf.size(dim)
        for dim, leaf in zip(dims, leaves, strict=True)
        if dim is not None
    ]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, "
            f"got sizes {sizes} for the mapped dimension"
        )
    return sizes[0]


def _process_batched_inputs(
    in_dims: Any, args: tuple[Any, ...], func: Any
) -> tuple[int, list[Any], list[Any], Any]:
    """(size of the batch, dimension of each leaf, leaves, structure) of arguments."""
    call = f"vmap({name_of(func)}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{call}expected `in_dims` to be int or a (potentially nested) tuple "
            f"matching the structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name_of(func)})(<inputs>): got no inputs. Maybe you forgot to add "
            "inputs, or you are trying to vmap over a function with no inputs. The "
            "latter is unsupported."
        )
    leaves, spec = tree.tree_flatten(args)
    dims = tree._broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{call}in_dims is not compatible with the structure of `inputs`. in_dims "
            f"has structure {tree.tree_structure(in_dims)} but inputs has structure "
            f"{spec}."
        )
    for i, (leaf, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"{call}Got in_dim={dim} for an input but in_dim must be either an "
                "integer dimension or None."
            )
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"{call}Got in_dim={dim} for an input but the input is of type "
                f"{type(leaf)}. We cannot vmap over non-Tensor arguments, please use "
                "None as the respective in_dim"
            )
        ndim = leaf.dim()
        if not -ndim <= dim < ndim:
            raise ValueError(
                f"{call}Got in_dim={dim} for some input, but that input is a Tensor of "
                f"dimensionality {ndim} so expected in_dim to satisfy -{ndim} <= "
                f"in_dim < {ndim}."
            )
        dims[i] = dim % ndim
    return _batch_size(dims, leaves), dims, leaves, spec


def _add_batch_dim(tensor: Tensor, in_dim: int, level: int) -> Tensor:
    """An argument with a dimension made that of the `vmap` at a depth."""
    at = level_at(level)
    found, dim = entered(tensor, in_dim, at), in_dim % tensor.dim()
    note_given(at, [found], [tensor], [dim])
    # What is no view of what was given is written back.
    version = None if found._storage is tensor._storage else found._version
    at.arguments[id(found), dim] = tensor, found, version
    return found


def _remove_batch_dim(
    tensor: Tensor, level: int, batch_size: int, out_dim: int
) -> Tensor:
    """A tensor with the examples of the `vmap` at a depth in a dimension of its own.

    Of an argument the tensor that was given, if they are there.
    """
    at = level_at(level)
    ndim = tensor.dim() + 1
    at_dim = out_dim + ndim if out_dim < 0 else out_dim
    known = at.arguments.get((id(tensor), at_dim))
    return _plain(left(tensor, out_dim, at)) if known is None else known[0]


def _maybe_remove_batch_dim(
    name: str, output: Any, vmap_level: int, batch_size: int, out_dim: int | None
) -> Any:
    """As `_remove_batch_dim`, for what a function of this name gave: None leaves it."""
    if out_dim is None:
        if isinstance(output, Tensor) and output._tmeta.batch:
            raise ValueError(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when "
                "out_dim is None"
            )
        return output
    if not isinstance(output, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type "
            f"{type(output)}. Did you mean to set out_dims= to None for output?"
        )
    return _remove_batch_dim(output, vmap_level, batch_size, out_dim)


def _create_batched_inputs(
    flat_in_dims: Sequence[Any], flat_args: Sequence[Any], vmap_level: int, spec: Any
) -> Any:
    """The arguments as the function gets them, each of the shape of one example."""
    return spec.unflatten(
        leaf if dim is None else _add_batch_dim(leaf, dim, vmap_level)
        for dim, leaf in zip(flat_in_dims, flat_args, strict=True)
    )


def _unwrap_batched(
    outputs: Any, out_dims: Any, vmap_level: int, batch_size: int, func: Any
) -> Any:
    """What the function gave, its examples in the dimensions asked for."""
    name = name_of(func)
    leaves, spec = tree.tree_flatten(outputs)
    dims: list[Any] | None
    if isinstance(outputs, Tensor):
        if isinstance(out_dims, int) or out_dims is None:
            dims = [out_dims]
        elif isinstance(out_dims, tuple) and len(out_dims) == 1:
            dims = list(out_dims)
        else:
            dims = None
    else:
        dims = tree._broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not "
            "compatible with the structure of `outputs`. out_dims has structure "
            f"{tree.tree_structure(out_dims)} but outputs has structure {spec}."
        )
    return spec.unflatten(
        _maybe_remove_batch_dim(name, leaf, vmap_level, batch_size, dim)
        for leaf, dim in zip(leaves, dims, strict=True)
    )


class _Steps:
    """Those of a mapped call that libraries replace in `torch._functorch.vmap`.

    TensorDict's do, so that arguments and results may be of its classes.
    """

    _process_batched_inputs = staticmethod(_process_batched_inputs)
    _create_batched_inputs = staticmethod(_create_batched_inputs)
    _unwrap_batched = staticmethod(_unwrap_batched)


# That module in its place, once it is imported.
steps: list[Any] = [_Steps]


# Running ------------------------------------------------------------------------------


def _run(
    func: Any,
    size: int,
    dims: Sequence[Any],
    leaves: Sequence[Any],
    spec: Any,
    out_dims: Any,
    randomness: str,
    kwargs: dict[str, Any],
) -> Any:
    with vmap_level(size, randomness) as level:
        depth = level.depth
        given = steps[0]._create_batched_inputs(dims, leaves, depth, spec)
        try:
            outputs = func(*given, **kwargs)
            return steps[0]._unwrap_batched(outputs, out_dims, depth, size, func)
        finally:
            # Now, as the results may be views of the arguments as they were.
            for leaf, name, args in level.reshaped:
                reshape_given(cast(Tensor, leaf), name, args)
            for (_, dim), (leaf, each, version) in level.arguments.items():
                if version is not None and each._version != version:
                    leaf.copy_(left(each, dim, level))


def _run_chunks(
    func: Any,
    chunks: Sequence[Sequence[Any]],
    dims: Sequence[Any],
    spec: Any,
    out_dims: Any,
    randomness: str,
    kwargs: dict[str, Any],
) -> Any:
    """One chunk of the batch after the other, the results joined."""
    state = default_generator.get_state() if randomness == "same" else None
    columns: list[list[Any]] = []
    structure = None
    for leaves in chunks:
        size = _batch_size(dims, leaves)
        if size == 0:
            continue
        if state is not None:
            default_generator.set_state(state)
        outputs = _run(func, size, dims, leaves, spec, out_dims, randomness, kwargs)
        flat, structure = tree.tree_flatten(outputs)
        columns.append(flat)
    assert structure is not None
    places = tree._broadcast_to_and_flatten(out_dims, structure)
    assert places is not None
    joined = [
        fns.cat(list(column), dim=dim)
        for column, dim in zip(zip(*columns, strict=True), places, strict=True)
    ]
    return structure.unflatten(joined)


@public(namespaces=("torch", "func"), overridden=NEVER)
def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Maps a function over a dimension of its arguments.

    `in_dims` says which dimension of each tensor (None: the same for all), nested as
    the arguments are; `out_dims` where the examples are in the results. `randomness`:
    whether random functions raise, or draw the "same" or "different" numbers for each
    example. `chunk_size`: how many examples at a time.

    >>> import torchshim as torch
    >>> torch.vmap(torch.dot)(torch.ones(2, 3), torch.ones(2, 3))
    tensor([3., 3.])
    """
    _check_randomness(randomness)
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(
            f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})"
        )

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        _check_out_dims(out_dims, func)
        size, dims, leaves, spec = steps[0]._process_batched_inputs(in_dims, args, func)
        if chunk_size is None:
            return _run(func, size, dims, leaves, spec, out_dims, randomness, kwargs)
        starts = range(0, size, chunk_size)
        chunks = [
            [
                leaf
                if dim is None
                else narrow(leaf, dim, start, min(chunk_size, size - start))
                for dim, leaf in zip(dims, leaves, strict=True)
            ]
            for start in starts
        ]
        return _run_chunks(func, chunks, dims, spec, out_dims, randomness, kwargs)

    return wrapped_like(func, wrapped)


def plain_vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0
) -> Callable[..., Any]:
    """As `vmap`, but what custom functions compute is mapped without a rule of theirs.

    PyTorch's vectorized Jacobians and gradcheck are made of such a one.
    """

    def inner(*args: Any, **kwargs: Any) -> Any:
        local.rec.levels[-1].plain = True
        return func(*args, **kwargs)

    return vmap(wrapped_like(func, inner), in_dims, out_dims)


def restore_vmap(
    func: Callable[..., Any], in_dims: Any, batch_size: int, randomness: str
) -> Callable[..., Any]:
    """As `vmap`, with the results' dimensions where they happen to be.

    The function made gives (results, dimensions); None for what is no tensor of the
    batch. Of what is an argument that is the argument's, of what was computed 0.
    """

    _check_randomness(randomness)

    def wrapped(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        leaves, spec = tree.tree_flatten(args)
        dims = tree._broadcast_to_and_flatten(in_dims, spec)
        if dims is None:
            raise AssertionError("flat_bdims must not be None")
        with vmap_level(batch_size, randomness) as level:
            given = [
                leaf if dim is None else entered(leaf, dim % leaf.dim(), level)
                for dim, leaf in zip(dims, leaves, strict=True)
            ]
            note_given(level, given, leaves, dims)
            results, out_spec = tree.tree_flatten(
                func(*spec.unflatten(given), **kwargs)
            )
            taken = {id(each): i for i, each in enumerate(given)}
            found = []
            for each in results:
                if not (isinstance(each, Tensor) and has_level(each, level)):
                    found.append((each, None))
                elif id(each) in taken:
                    found.append((leaves[taken[id(each)]], dims[taken[id(each)]]))
                else:
                    found.append((left(each, 0, level), 0))
        return (
            out_spec.unflatten([each for each, _ in found]),
            out_spec.unflatten([dim for _, dim in found]),
        )

    return wrapped


def chunk_vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    chunks: int = 2,
) -> Callable[..., Any]:
    """As `vmap`, the batch divided into a number of chunks."""
    _check_randomness(randomness)
    if chunks == 1:
        return vmap(func, in_dims=in_dims, out_dims=out_dims, randomness=randomness)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        _check_out_dims(out_dims, func)
        _, dims, leaves, spec = steps[0]._process_batched_inputs(in_dims, args, func)
        columns = [
            [leaf] * chunks if dim is None else chunk(leaf, chunks, dim)
            for dim, leaf in zip(dims, leaves, strict=True)
        ]
        rows = list(zip(*columns, strict=True))
        return _run_chunks(func, rows, dims, spec, out_dims, randomness, kwargs)

    return wrapped_like(func, wrapped)
