"""Products whose arguments take some reading: `einsum`, `tensordot`, chains."""

from __future__ import annotations

import functools
import string
from collections.abc import Sequence
from typing import Any

from torchshim._autocast import autocast_whole
from torchshim._bind import type_name
from torchshim._derived import fns, public
from torchshim._errors import triggered, warn_once
from torchshim._functions._arguments import all_tensors, tensor_argument
from torchshim._functions.memory import write_into
from torchshim._functions.resizing import resize_output
from torchshim._tensor import Tensor

_LETTERS = string.ascii_uppercase + string.ascii_lowercase


@public
@autocast_whole("einsum")
def einsum(*args: Any) -> Tensor:
    """Products summed as an equation of subscripts says.

    https://docs.pytorch.org/docs/2.13/generated/torch.einsum.html

    >>> import torchshim as torch
    >>> torch.einsum("ij,j->i", torch.ones(2, 3), torch.ones(3))
    tensor([3., 3.])
    """
    if len(args) < 2 or (len(args) == 2 and args[1] in ((), [])):
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or "
            "at least one operand and its subscripts list"
        )
    if isinstance(args[0], Tensor):
        equation, operands = _from_lists(args)
    else:
        equation, operands = args[0], args[1:]
        if not isinstance(equation, str):
            raise TypeError(
                "einsum(): argument 'equation' (position 1) must be str, not "
                f"{type_name(equation)}"
            )
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    for i, x in enumerate(operands):
        if not isinstance(x, Tensor):
            raise TypeError(
                f"expected Tensor as element {i} in argument 1, but got {type_name(x)}"
            )
    explicit = _explicit(equation, [len(x._tmeta.shape) for x in operands])
    _check_sizes(equation, explicit, operands)
    left, _, right = explicit.partition("->")
    summed = False
    if len(operands) == 1:
        return _of_one(operands[0], left, right)
    if len(operands) == 2:
        operands, left, summed = _summed_alone(operands, left, right)
        explicit = f"{left}->{right}"
    if set(right).issuperset(left.replace(",", "")):
        # Nothing is summed: products, which autocast leaves alone.
        terms = zip(operands, left.split(","), strict=True)
        spread = [_spread(x, term, right) for x, term in terms]
        made = functools.reduce(fns.mul, spread)
        return fns.view(made, tuple(made._tmeta.shape)) if summed else made
    return fns._einsum(explicit, tuple(operands))


def _diagonals(x: Tensor, term: str) -> tuple[Tensor, str]:
    """The view in which no label is repeated, and its labels."""
    for c in term:
        while term.count(c) > 1:
            first = term.index(c)
            second = term.index(c, first + 1)
            x = fns.diagonal(x, 0, first, second)
            term = term[:first] + term[first + 1 : second] + term[second + 1 :] + c
    return x, term


def _of_one(x: Tensor, term: str, right: str) -> Tensor:
    """`einsum` of one tensor: a view of it, summed where labels are missing."""
    x, term = _diagonals(x, term)
    summed = "".join(c for c in term if c not in right)
    x = fns.permute(x, tuple(term.index(c) for c in right + summed))
    if not summed:
        return x
    return fns.sum(x, tuple(range(len(right), len(term))))


def _summed_alone(
    operands: Sequence[Tensor], left: str, right: str
) -> tuple[Sequence[Tensor], str, bool]:
    """Sums taken first where the two operands have no label that both are summed over.

    What is left are products of elements, no matrix product. The last result: whether
    there were any.
    """
    terms = left.split(",")
    if set(terms[0]) & set(terms[1]) - set(right):
        return operands, left, False
    made, summed = [], False
    for i, x in enumerate(operands):
        x, term = _diagonals(x, terms[i])
        alone = tuple(d for d, c in enumerate(term) if c not in right)
        made.append(fns.sum(x, alone) if alone else x)
        summed = summed or bool(alone)
        terms[i] = "".join(c for c in term if c in right)
    return made, ",".join(terms), summed


def _spread(x: Tensor, term: str, right: str) -> Tensor:
    """A view with the dimensions of the result, of length 1 where it has none."""
    x, term = _diagonals(x, term)
    order = tuple(term.index(c) for c in right if c in term)
    if order != tuple(range(len(order))):
        x = fns.permute(x, order)
    for dim, c in enumerate(right):
        if c not in term:
            x = fns.unsqueeze(x, dim)
    return x


def _from_lists(args: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """The equation for operands that are followed by lists of numbers."""

    def text(subscripts: Sequence[Any]) -> str:
        out = ""
        for s in subscripts:
            if s is Ellipsis:
                out += "..."
            elif s >= 0 and s < 52:
                out += _LETTERS[s]
            else:
                raise ValueError(
                    "einsum(): subscript in subscript list is not within the valid "
                    "range [0, 52)"
                )
        return out

    equation = ",".join(text(s) for s in args[1::2])
    if len(args) % 2:
        equation = ",".join(text(s) for s in args[1:-1:2]) + "->" + text(args[-1])
        return equation, args[:-1:2]
    return equation, args[::2]


_DIMENSION = 0x100  # code points that stand for the dimensions of an ellipsis


def _subscripts(left: str, ndims: Sequence[int]) -> tuple[list[list[str]], list[int]]:
    """For each operand its letters, and where among them its ellipsis is, or -1."""
    groups: list[list[str]] = [[]]
    ellipsis: list[int] = [-1]
    i = 0
    while i < len(left):
        c = left[i]
        if c == " ":
            pass
        elif c == ".":
            which = len(groups) - 1
            if ellipsis[-1] >= 0:
                raise RuntimeError(
                    f"einsum(): found '.' for operand {which} for which an ellipsis "
                    "was already found"
                )
            if left[i : i + 3] != "...":
                raise RuntimeError(
                    f"einsum(): found '.' for operand {which} that is not part of any "
                    "ellipsis"
                )
            ellipsis[-1] = len(groups[-1])
            i += 2
        elif c == ",":
            groups.append([])
            ellipsis.append(-1)
            if len(groups) > len(ndims):
                raise RuntimeError(
                    "einsum(): fewer operands were provided than specified in the "
                    "equation"
                )
        elif c in _LETTERS:
            groups[-1].append(c)
        else:
            raise RuntimeError(_invalid(i))
        i += 1
    if len(groups) < len(ndims):
        raise RuntimeError(
            "einsum(): more operands were provided than specified in the equation"
        )
    return groups, ellipsis


def _explicit(equation: str, ndims: Sequence[int]) -> str:
    """The equation checked, without spaces or ellipses, and with its right side."""
    left, arrow, right = equation.partition("->")
    groups, ellipsis = _subscripts(left, ndims)
    widest = 0
    for which, (group, at, n) in enumerate(zip(groups, ellipsis, ndims, strict=True)):
        if at < 0 and len(group) != n:
            raise RuntimeError(
                "einsum(): the number of subscripts in the equation "
                f"({len(group)}) does not match the number of dimensions ({n}) for "
                f"operand {which} and no ellipsis was given"
            )
        if at >= 0 and len(group) > n:
            raise RuntimeError(
                "einsum(): the number of subscripts in the equation "
                f"({len(group)}) is more than the number of dimensions ({n}) for "
                f"operand {which}"
            )
        widest = max(widest, n - len(group)) if at >= 0 else widest
    free = [c for c in _LETTERS if c not in equation]
    free += [chr(_DIMENSION + k) for k in range(widest)]
    dots = free[:widest]
    terms = []
    for group, at, n in zip(groups, ellipsis, ndims, strict=True):
        term = list(group)
        if at >= 0:
            missing = n - len(group)
            term[at:at] = dots[widest - missing :]
        terms.append("".join(term))
    if arrow:
        out = _right_side(right, len(left) + 2, dots, {c for g in groups for c in g})
    else:
        counts: dict[str, int] = {}
        for group in groups:
            for c in group:
                counts[c] = counts.get(c, 0) + 1
        out = dots + sorted(c for c, k in counts.items() if k == 1)
    return f"{','.join(terms)}->{''.join(out)}"


def _invalid(index: int) -> str:
    return (
        f"einsum(): invalid subscript given at index {index} in the equation string, "
        "subscripts must be in [a-zA-Z]"
    )


def _right_side(right: str, offset: int, dots: list[str], known: set[str]) -> list[str]:
    out: list[str] = []
    found, i = False, 0
    while i < len(right):
        c = right[i]
        if c == " ":
            pass
        elif c == ".":
            if found:
                raise RuntimeError(
                    "einsum(): found '.' for output but an ellipsis (...) was already "
                    "found"
                )
            if right[i : i + 3] != "...":
                raise RuntimeError(
                    "einsum(): found '.' for output that is not part of any ellipsis "
                    "(...)"
                )
            out += dots
            found = True
            i += 2
        elif c in _LETTERS:
            if c in out:
                raise RuntimeError(
                    f"einsum(): output subscript {c} appears more than once in the "
                    "output"
                )
            if c not in known:
                raise RuntimeError(
                    f"einsum(): output subscript {c} does not appear in the equation "
                    "for any input operand"
                )
            out.append(c)
        else:
            raise RuntimeError(_invalid(offset + i))
        i += 1
    return out


def _check_sizes(given: str, equation: str, operands: Sequence[Any]) -> None:
    sizes: dict[str, int] = {}
    for which, (term, x) in enumerate(
        zip(equation.split("->")[0].split(","), operands, strict=True)
    ):
        own: dict[str, int] = {}
        for c, size in zip(term, x._tmeta.shape, strict=True):
            if own.get(c, size) != size:
                raise RuntimeError(
                    f"einsum(): subscript {c} is repeated for operand {which} but the "
                    f"sizes don't match, {size} != {own[c]}"
                )
            own[c] = size
        for c, size in own.items():
            seen = sizes.get(c, 1)
            if size != seen and size != 1 and seen != 1:
                if c not in given:
                    raise RuntimeError(
                        f"einsum(): dimension {term.index(c)} covered by ellipsis in "
                        f"operand {which}has size {size} which does not broadcast with "
                        f"previously seen ellipsis with size {seen} for the respective "
                        "dimension"
                    )
                raise RuntimeError(
                    f"einsum(): subscript {c} has size {size} for operand {which} "
                    "which "
                    f"does not broadcast with previously seen size {seen}"
                )
            sizes[c] = seen if size == 1 else size


@public(name="inner", method=True)
def _inner_or_product(
    input: Tensor, other: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """Products summed over the last dimension of both; the product with a number.

    https://docs.pytorch.org/docs/2.13/generated/torch.inner.html

    >>> import torchshim as torch
    >>> torch.inner(torch.ones(2, 3), torch.ones(3))
    tensor([3., 3.])
    """
    tensor_argument("inner", "self", 1, input)
    tensor_argument("inner", "other", 2, other)
    if input._tmeta.shape and other._tmeta.shape:
        return fns.inner(input, other, out=out)
    return fns.mul(input, other, out=out)


@public(name="kron", method=True)
def _kron_of_all(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Kronecker product; both have the dimensions of that with more.

    https://docs.pytorch.org/docs/2.13/generated/torch.kron.html

    >>> import torchshim as torch
    >>> torch.kron(torch.ones(2), torch.tensor([1.0, 2.0]))
    tensor([1., 2., 1., 2.])
    """
    tensor_argument("kron", "self", 1, input)
    tensor_argument("kron", "other", 2, other)
    # What has dimensions decides the dtype, what has none does not.
    ndim = max(len(input._tmeta.shape), len(other._tmeta.shape))
    if not input._tmeta.shape and ndim:
        input = fns.reshape(input, (1,) * ndim)
    elif not other._tmeta.shape and ndim:
        other = fns.reshape(other, (1,) * ndim)
    return fns.kron(input, other, out=out)


@public
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Any = None) -> Tensor:
    """Products summed over the last dimensions of one and the first of the other.

    `dims` is how many, or two lists of dimensions.
    https://docs.pytorch.org/docs/2.13/generated/torch.tensordot.html

    >>> import torchshim as torch
    >>> torch.tensordot(torch.ones(2, 3), torch.ones(3, 2), 1)
    tensor([[3., 3.],
            [3., 3.]])
    """
    if not isinstance(dims, (tuple, list, Tensor, int)):
        raise RuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or "
            f"list[list[int]] containing two lists, but got dims={dims}"
        )
    if isinstance(dims, Tensor):
        dims = dims.tolist() if dims.numel() > 1 else int(dims.item())
    if isinstance(dims, (tuple, list)):
        first, second = dims
        _check_contracted("dims_self", 3, first)
        _check_contracted("dims_other", 4, second)
    else:
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(
                f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}"
            )
        first, second = list(range(-dims, 0)), list(range(dims))
    if len(first) != len(second):
        raise RuntimeError("both dimension lists should have same length")
    result = fns._tensordot(a, b, tuple(first), tuple(second))
    if out is None:
        return result
    made, have = result._tmeta.dtype, out._tmeta.dtype
    if made is not have:
        raise RuntimeError(
            "tensordot: Expected the output tensor to have dtype "
            f"{made.scalar_name}, but got an output tensor with dtype "
            f"{have.scalar_name}"
        )
    return write_into("tensordot", result, out, (a, b))


def _check_contracted(name: str, position: int, dims: Any) -> None:
    where = f"argument '{name}' (position {position})"
    start = f"tensordot(): {where} must be tuple of ints"
    if not isinstance(dims, (tuple, list)):
        raise TypeError(f"{start}, not {type_name(dims)}")
    for i, dim in enumerate(dims):
        if not hasattr(dim, "__index__"):
            found = type_name(dim)
            raise TypeError(f"{start}, but found element of type {found} at pos {i}")


@public(namespaces=("linalg",))
def multi_dot(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    """The product of a chain of matrices, in the cheapest order.

    https://docs.pytorch.org/docs/2.13/generated/torch.linalg.multi_dot.html

    >>> import torchshim as torch
    >>> torch.linalg.multi_dot([torch.ones(2, 3), torch.ones(3, 2), torch.ones(2)])
    tensor([6., 6.])
    """
    return _chained(tuple(tensors), out)


@public
def chain_matmul(*matrices: Tensor, out: Any = None) -> Tensor:
    """Deprecated: `linalg.multi_dot` of matrices given one by one.

    https://docs.pytorch.org/docs/2.13/generated/torch.chain_matmul.html

    >>> import torchshim as torch
    >>> torch.chain_matmul(torch.ones(1, 2), torch.ones(2, 1))
    tensor([[2.]])
    """
    all_tensors(matrices)
    text = (
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch "
        "release. Use torch.linalg.multi_dot instead, which accepts a list of two or "
        "more tensors rather than multiple parameters."
    )
    warn_once(triggered(text, "aten/src/ATen/native/LinearAlgebra.cpp:1102"))
    for each in matrices:
        if each.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {each.ndim}, expected 2 instead.")
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    if len(matrices) == 1:
        (only,) = matrices
        if out is None:
            return only.clone()
        resize_output(out, only.shape)
        return out.copy_(only)
    return _chained(matrices, out)


@public(namespaces=("torch", "ops.aten"))
def _grouped_mm(
    self: Tensor,
    mat2: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: Any = None,
) -> Tensor:
    """`nn.functional.grouped_mm` by its first name."""
    made = fns._grouped_products(self, mat2, offs)
    if out_dtype is not None and out_dtype is not self.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    return made


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: Any = None,
) -> Tensor:
    """Products of groups, each of some of the rows with a matrix of its own.

    `offs` are the ends of the groups: in the rows of `mat_a` if that has two
    dimensions and `mat_b` three, in the columns of `mat_b` the other way round, in the
    shared dimension if both have two. What is behind the last is zero.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.grouped_mm.html

    >>> import torchshim as torch
    >>> rows, experts = torch.ones(3, 4), torch.stack([torch.eye(4), 2 * torch.eye(4)])
    >>> ends = torch.tensor([1, 3], dtype=torch.int32)
    >>> torch.nn.functional.grouped_mm(rows, experts, offs=ends)
    tensor([[1., 1., 1., 1.],
            [2., 2., 2., 2.],
            [2., 2., 2., 2.]])
    """
    return _grouped_mm(mat_a, mat_b, offs, bias, out_dtype)


def _chained(tensors: tuple[Tensor, ...], out: Tensor | None) -> Tensor:
    result = fns._multi_dot(tensors)
    if out is None:
        return result
    made, have = result._tmeta.dtype, out._tmeta.dtype
    if made is not have:
        raise RuntimeError(
            f"multi_dot(): expected out tensor to have dtype {made.cpp_name} but got "
            f"{have.cpp_name}"
        )
    return write_into("mm", result, out, (tensors,))
