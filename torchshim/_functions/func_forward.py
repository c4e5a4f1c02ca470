"""Forward mode: dual tensors, and `jvp`, `jacfwd`, `hessian`, `linearize` on them.

While a level of forward mode is open, every event whose operands have tangents is
followed by the event that gives its results theirs (`Trie.push_forward`).

https://docs.pytorch.org/docs/2.13/func.api.html
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torchshim import _pytree as tree
from torchshim._core.levels import DUAL, JVP, Level
from torchshim._core.record import local
from torchshim._core.storage import bits_of
from torchshim._derived import fns, public
from torchshim._functions.backward import zeros_of
from torchshim._functions.func_reverse import (
    Argnums,
    check_outputs,
    chosen_arguments,
    jacrev,
    other_tensors,
    refuse_complex,
    standard_basis,
    with_arguments,
)
from torchshim._functions.pieces import narrow
from torchshim._functions.shape import view_as
from torchshim._functions.strided import as_strided
from torchshim._functions.vmap import vmap, wrapped_like
from torchshim._tensor import Tensor

_JVP = "jvp(f, primals, tangents)"


@contextlib.contextmanager
def forward_level() -> Iterator[Level]:
    """A level of forward mode around what runs inside."""
    rec = local.rec
    enabled, rec.forward = rec.forward, True
    level = rec.open_level(JVP)
    try:
        yield level
    finally:
        rec.close_level(level)
        rec.forward = enabled


# The level that `autograd.forward_ad` opened, if any.
_dual_level: list[Level] = []


def current_dual_level() -> Level | None:
    """The level of `autograd.forward_ad` in progress."""
    return _dual_level[-1] if _dual_level else None


def enter_dual_level() -> int:
    """Opens the level that `make_dual` and `unpack_dual` use; only one at a time.

    RuntimeError within another one. `dual_level` is the context manager.

    >>> import torchshim as torch
    >>> fw = torch.autograd.forward_ad
    >>> level = fw.enter_dual_level()
    >>> x = fw.make_dual(torch.tensor(3.0), torch.tensor(1.0))
    >>> fw.unpack_dual(x * x).tangent
    tensor(6.)
    >>> fw.exit_dual_level()
    """
    if _dual_level:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _dual_level.append(local.rec.open_level(DUAL))
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Closes the level: its tangents are gone.

    RuntimeError if none is open.

    >>> import torchshim as torch
    >>> fw = torch.autograd.forward_ad
    >>> level = fw.enter_dual_level()
    >>> x = fw.make_dual(torch.tensor(3.0), torch.tensor(1.0))
    >>> fw.exit_dual_level()
    >>> fw.unpack_dual(x)
    UnpackedDualTensor(primal=tensor(3.), tangent=None)
    """
    current = 0 if _dual_level else -1
    if level is not None and level != current:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was "
            "created. This is not supported."
        )
    if not _dual_level:
        raise RuntimeError("Dual level must be a positive number.")
    local.rec.close_level(_dual_level.pop())


def check_size(tensor: Any, tangent: Any) -> None:
    """Raises for a tangent of another shape than its tensor's."""
    if tuple(tensor.shape) != tuple(tangent.shape):
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of "
            "the original Tensor, this is not supported. Tensor is of size "
            f"{list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )


def paired(tensor: Any, tangent: Any, level: Level) -> Tensor:
    """The tensor (on the same memory) with a tangent of a level; checked."""
    for name, each in (("primal", tensor), ("tangent", tangent)):
        if not (each.is_floating_point() or each.is_complex()):
            raise ValueError(
                f"Expected {name} to be floating point or complex, but got: "
                f"{each.dtype}"
            )
    check_size(tensor, tangent)
    if tangent.is_complex() and not tensor.is_complex():
        raise NotImplementedError(
            "forward mode: complex tangents of real tensors are not supported"
        )
    rec = local.rec
    if rec.tangent_of(tensor, level.number) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward "
            "gradient at the same level 0 is not supported."
        )
    if rec.tangent_of(tangent, level.number) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same "
            "level0 is not supported."
        )
    if {n for n, _ in tensor._tmeta.batch} - {n for n, _ in tangent._tmeta.batch}:
        tangent = fns._vmap_as(tangent, tensor)
    if not _laid_out_alike(tensor, tangent):
        tangent = _laid_out_as(tensor, tangent)
    dual = view_as(tensor, tensor)
    dual._levels = tuple(rec.levels)
    rec.begin_tangents(dual, level, tangent)
    return dual


def _memory_size(tensor: Any) -> int:
    """How many elements the memory has that a tensor shows."""
    storage = tensor._storage
    meta = tensor._tmeta if storage is None else storage.meta
    return meta.numel * meta.dtype.itemsize // tensor._tmeta.dtype.itemsize


def _laid_out_alike(tensor: Any, tangent: Any) -> bool:
    """Whether PyTorch takes a tangent as it is: a view of one is a view of the other.

    As `has_same_meta` (torch/csrc/autograd/autograd_meta.cpp).
    """
    own, other = tensor._tmeta, tangent._tmeta
    if own.numel and (
        any(
            n != 1 and a != b
            for n, a, b in zip(own.shape, own.strides, other.strides, strict=True)
        )
        or own.offset != other.offset
    ):
        return False
    if not other.batch and _memory_size(tensor) != _memory_size(tangent):
        return False
    return bits_of(tensor) == bits_of(tangent)


def _laid_out_as(tensor: Any, tangent: Any) -> Tensor:
    """A copy of a tangent that is laid out in memory as its tensor is."""
    meta = tensor._tmeta
    if tangent._tmeta.batch:
        return fns.clone(tangent)
    kind, where = tangent._tmeta.dtype, tangent._tmeta.device
    with_gaps = fns._gradient_zeros((_memory_size(tensor),), kind, where)
    copy = as_strided(with_gaps, tuple(meta.shape), meta.strides, meta.offset)
    for bit in bits_of(tensor):
        copy = fns._conj(copy) if bit == "conj" else fns._neg_view(copy)
    return copy.copy_(tangent).detach()


def _value_of(leaf: Any, level: Level) -> Tensor:
    if not isinstance(leaf, Tensor):
        raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)}")
    return parted(leaf, level)[0]


def parted(tensor: Any, level: Level) -> tuple[Tensor, Tensor | None]:
    """(primal, tangent) of a tensor; the primal has no tangent of this level."""
    rec = local.rec
    tangent = rec.tangent_of(tensor, level.number)
    if tangent is None:
        return tensor, None
    primal = view_as(tensor, tensor)
    rec.begin_tangents(primal, level, None)
    return primal, tangent


# jvp ----------------------------------------------------------------------------------


def _check_tensors(leaves: Sequence[Any], name: str) -> None:
    if not leaves:
        raise RuntimeError(f"{_JVP}: Expected {name} to contain at least one Tensor.")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{_JVP}: Expected {name} to only contain Tensors, got {type(leaf)}"
            )


def _jvp(
    func: Any, primals: Any, tangents: Any, argnums: Any, strict: bool, has_aux: bool
) -> tuple[Any, Any, Any]:
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{_JVP}: Expected primals to be a tuple. E.g. it should be valid to call "
            "f(*primals)."
        )
    diff = primals if argnums is None else chosen_arguments(primals, argnums)
    flat, spec = tree.tree_flatten(diff)
    flat_tangents, tangents_spec = tree.tree_flatten(tangents)
    if spec != tangents_spec:
        raise RuntimeError(
            f"{_JVP}: Expected primals and tangents to have the same python "
            "structure. For example, if primals is a tuple of 3 tensors, tangents also "
            f"must be. Got primals with structure {spec} and tangents with structure "
            f"{tangents_spec}"
        )
    _check_tensors(flat, "primals")
    _check_tensors(flat_tangents, "tangents")
    with forward_level() as level:
        duals = spec.unflatten(
            [paired(p, t, level) for p, t in zip(flat, flat_tangents, strict=True)]
        )
        if argnums is not None:
            local.rec.lend(level, other_tensors(primals, argnums))
            duals = with_arguments(primals, duals, argnums)
        outputs, aux = func(*duals), None
        if has_aux:
            if not (isinstance(outputs, tuple) and len(outputs) == 2):
                raise RuntimeError(
                    f"{_JVP}: output of function f should be a tuple: (output, aux) if "
                    "has_aux is True"
                )
            outputs, aux = outputs
            aux = tree.tree_map(lambda leaf: _value_of(leaf, level), aux)
        outs, out_spec = tree.tree_flatten(outputs)
        check_outputs(outs, _JVP)
        pairs = [_unpacked(out, level, strict) for out in outs]
        values = out_spec.unflatten([value for value, _ in pairs])
        return values, out_spec.unflatten([tangent for _, tangent in pairs]), aux


def _unpacked(out: Tensor, level: Level, strict: bool) -> tuple[Tensor, Tensor]:
    value, tangent = parted(out, level)
    if tangent is None:
        if strict:
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is "
                "independent of the inputs. This is not allowed with strict=True."
            )
        tangent = zeros_of(value)
    return value, tangent


@public(namespaces=("func",))
def jvp(
    func: Callable[..., Any],
    primals: Any,
    tangents: Any,
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """The outputs of `func`, and how they change along `tangents`.

    https://docs.pytorch.org/docs/2.13/generated/torch.func.jvp.html

    >>> import torchshim as torch
    >>> primals, tangents = (torch.tensor([1.0, 2.0]),), (torch.ones(2),)
    >>> torch.func.jvp(lambda x: x * x, primals, tangents)[1]
    tensor([2., 4.])
    """
    values, moved, aux = _jvp(func, primals, tangents, None, strict, has_aux)
    return (values, moved, aux) if has_aux else (values, moved)


# jacfwd, hessian ----------------------------------------------------------------------


@public(namespaces=("func",))
def jacfwd(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """A function that gives the Jacobian of `func`, computed column by column.

    https://docs.pytorch.org/docs/2.13/generated/torch.func.jacfwd.html

    >>> import torchshim as torch
    >>> torch.func.jacfwd(lambda x: x * x)(torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    def wrapper(*args: Any) -> Any:
        refuse_complex("jacfwd", args, True)
        primals, spec = tree.tree_flatten(chosen_arguments(args, argnums))
        sizes = [primal.numel() for primal in primals]
        basis = spec.unflatten(standard_basis(primals, 0, sum(sizes)))

        def push(tangents: Any) -> Any:
            values, moved, aux = _jvp(func, args, tangents, argnums, False, has_aux)
            refuse_complex("jacfwd", values, False)
            return (moved, aux) if has_aux else moved

        results, aux = vmap(push, randomness=randomness)(basis), None
        if has_aux:
            results, aux = results
            aux = tree.tree_map(lambda leaf: leaf[0], aux)
        outs, out_spec = tree.tree_flatten(results)
        jacobians: list[Any] = []
        for out in outs:
            row: list[Any] = []
            at = 0
            for primal, size in zip(primals, sizes, strict=True):
                piece = fns.movedim(narrow(out, 0, at, size), 0, -1)
                row.append(
                    fns.unflatten(piece, -1, primal.shape)
                    if primal.shape
                    else fns.squeeze(piece, -1)
                )
                at += size
            jacobian = spec.unflatten(row)
            jacobians.append(jacobian[0] if isinstance(argnums, int) else jacobian)
        result = out_spec.unflatten(jacobians)
        return (result, aux) if has_aux else result

    return wrapped_like(func, wrapper)


@public(namespaces=("func",))
def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that gives the Hessian of `func`: forward over reverse mode.

    https://docs.pytorch.org/docs/2.13/generated/torch.func.hessian.html

    >>> import torchshim as torch
    >>> torch.func.hessian(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


# linearize ----------------------------------------------------------------------------


@public(namespaces=("func",))
def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Any]:
    """The outputs of `func`, and its linear approximation there: tangents to tangents.

    https://docs.pytorch.org/docs/2.13/generated/torch.func.linearize.html

    >>> import torchshim as torch
    >>> out, push = torch.func.linearize(lambda x: x * x, torch.tensor([1.0, 2.0]))
    >>> push(torch.ones(2))
    tensor([2., 4.])
    """
    output = func(*primals)
    flat, spec = tree.tree_flatten(primals)
    for each in flat:
        _ = each.new_empty  # AttributeError for what is no tensor

    def jvp_fn(*tangents: Any) -> Any:
        given, given_spec = tree.tree_flatten(tangents)
        if given_spec != spec:
            raise RuntimeError(
                f"Expected the tangents {given_spec} to have the same argspec as the "
                f"primals {spec}"
            )
        for i, (tangent, primal) in enumerate(zip(given, flat, strict=True)):
            for what in ("shape", "device", "dtype"):
                own, expected = getattr(tangent, what), getattr(primal, what)
                if own != expected:
                    raise RuntimeError(
                        f"tangent:{i} with {what} {own} in flattened pytree doesn't "
                        f"match the {what} {expected} of the corresponding primal."
                    )
        return _jvp(func, primals, tangents, None, False, False)[1]

    return output, jvp_fn
