"""`MaskedTensor` compared with PyTorch: construction, functions, gradients, layouts."""

from __future__ import annotations

import functools
import importlib
import inspect
import warnings

import pytest

import torchshim
from tests.oracle import case

UNARY = (
    "abs acos angle bitwise_not ceil cos exp floor log log1p neg positive reciprocal "
    "round rsqrt sigmoid sign signbit sqrt square tanh trunc isnan nan_to_num lgamma "
    "i0 logit expm1 erf relu isinf isfinite logical_not sinc deg2rad digamma"
).split()
BINARY = (
    "add sub mul div eq lt maximum fmod atan2 floor_divide logaddexp pow remainder ge "
    "ne fmin true_divide"
).split()
REDUCTIONS = "sum mean amin amax argmin argmax prod all norm var std".split()


def quietly(function):
    """Without the warnings that each masked tensor brings."""

    @functools.wraps(function)
    def quiet(*args, **kwargs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = function(*args, **kwargs)
            return iter(list(found)) if inspect.isgeneratorfunction(function) else found

    return quiet


@quietly
def scope_of(torch):
    """The names that expressions use."""
    masked = importlib.import_module(f"{torch.__name__}.masked")
    d = torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, 6.0]])
    k = torch.tensor([[True, False, True], [False, False, True]])
    make = masked.masked_tensor

    def sparse(layout="coo"):
        mask = getattr(k, f"to_sparse_{layout}")()
        mask = mask.coalesce() if layout == "coo" else mask
        return make(d.sparse_mask(mask), mask)

    return {
        **{"torch": torch, "F": torch.nn.functional, "d": d, "k": k},
        **{"make": make, "as_masked": masked.as_masked_tensor, "masked": masked},
        **{"m": make(d, k), "x": make(d, k, requires_grad=True), "sparse": sparse},
    }


def shown(torch, text, **names):
    """What an expression gives, as text, or its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scope = scope_of(torch) | names
        try:
            found = eval(text, scope)
            several = isinstance(found, (tuple, list))
            return [str(each) for each in (found if several else [found])]
        except Exception as error:
            text = str(error).replace("torchshim", "torch")
            # Python's own text, which 3.12 changed.
            text = text.replace(
                "iterable argument is empty", "arg is an empty sequence"
            )
            return [type(error).__name__, text]


def all_shown(torch, text, **names):
    for line in text.strip().splitlines():
        yield line, shown(torch, line.strip(), **names)


@case
def construction(torch):
    yield from all_shown(
        torch,
        """
        m, make(torch.arange(6).view(2, 3), k), make(k, k), make(d[0], k[0])
        make(d[0, 0], k[0, 0]), make(d[0, 0], k[0, 1]), make(d[None], k[None])
        make(d * 123456.789, k)
        make(torch.ones(0), torch.ones(0, dtype=torch.bool))
        make(d.half(), k).dtype, make(d.char(), k).dtype
        make(d.bfloat16(), k)
        make(d.to(torch.complex64), k)
        make(d.byte(), k)
        make([1], k)
        make(d, [1])
        make(m, k)
        make(d, m)
        make(d.to_sparse(), k)
        make(d, k[0])
        make(d, k[:, :2])
        make(d, d)
        make(d.to_sparse_csc(), k.to_sparse_csc())
        make(torch.arange(6).view(2, 3), k, requires_grad=True)
        x.requires_grad, x.is_leaf, make(d, k, True).requires_grad
        make(d.clone().requires_grad_(), k).requires_grad
        masked.is_masked_tensor(m)
        masked.is_masked_tensor(d), isinstance(m, torch.Tensor)
        m.shape, m.dtype, m.layout, m.device, m.requires_grad, m.is_leaf, m.grad_fn
        m.stride(), m.t().stride(), m.stride(0), m.storage_offset(), m.data_ptr()
        m.is_contiguous(), m.dim(), m.numel(), len(m), m.size(1), m.ndim, m.is_sparse
        m.get_data(), m.get_mask(), m.to_tensor(0)
        m.get_data().data_ptr() == d.data_ptr()
        as_masked(d, k), as_masked(torch.arange(6).view(2, 3), k), as_masked(d * 1, k)
        """,
    )


@case
def warnings_of_masked_tensors(torch):
    make = scope_of(torch)["make"]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        leaf = torch.ones(2, requires_grad=True)
        make(leaf, torch.tensor([True, False]))
    yield [(w.category.__name__, str(w.message)) for w in told]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(TypeError):
            make(torch.ones(2), torch.tensor([True, False])).relu()
    yield [str(w.message) for w in told][1:]


@case.over(*UNARY)
def functions_of_one(torch, name):
    yield from all_shown(torch, f"torch.{name}(m)\nm.clone().{name}_()")


@case.over(*BINARY)
def functions_of_two(torch, name):
    yield from all_shown(
        torch,
        f"""
        torch.{name}(m, m)
        torch.{name}(m, 2)
        torch.{name}(m, d)
        torch.{name}(d, m)
        m.{name}(m)
        torch.{name}(m, make(d, ~k))
        """,
    )


@case
def operators(torch):
    yield from all_shown(
        torch,
        """
        m + 1, 1 + m, m * 2, 2 * m, m - 1, m / 2
        2 / m, -m, abs(m), m ** 2, m // 2, m % 2
        m < 2, m < m, m <= 2, m > 2, m == 2
        m != 2, ~make(k, k), make(k, k) & make(k, k)
        1 - m
        2 ** m
        m @ m.t()
        m + make(d, ~k)
        m[0] + d, m[0] + torch.ones(2, 3)
        torch.add(m, m, alpha=2)
        torch.div(m, m, rounding_mode="floor")
        torch.round(m, decimals=1)
        m.clamp(1, 3), torch.clamp(m, min=1), m.clip(0.0), m.pow(2), m.clone().pow_(2)
        m.clone().add_(1), m.clone().mul_(d), m.clone().__iadd__(1), m.clone().exp_()
        x.add_(1)
        torch.hypot(m, m)
        """,
    )


@case
def arrangements(torch):
    yield from all_shown(
        torch,
        """
        m[0], m[0, 1], m[0, 0], m[:, 1:], m[None], m[..., 0], m[[0, 1]], m[k], m[:, ::2]
        m.view(3, 2), m.reshape(6), m.t(), m.transpose(0, 1), m.unsqueeze(0), m.mT
        m.expand(2, 2, 3), m.flatten(), m.ravel(), m.chunk(2), torch.split(m, 1)
        torch.cat([m, m]), torch.stack([m, m], 1)
        torch.vstack([m, m]), m.unfold(1, 2, 1)
        torch.cat([m, d])
        F.unfold(m[None, None], (2, 2)), torch.nn.Unfold((2, 2))(m[None, None])
        F.fold(make(torch.ones(1, 4, 2), torch.ones(1, 4, 2).bool()), (2, 3), (2, 2))
        m.narrow(1, 0, 2), m.select(0, 1), m[0].expand_as(d)
        m.permute(1, 0)
        m.T
        m.squeeze()
        m.repeat(2, 1)
        m.flip(0)
        m.t().is_contiguous(), m.t().contiguous().is_contiguous(), m.contiguous() is m
        m.zero_()
        torch.zeros_like(m)
        m.sort()
        """,
    )


@case.over(*REDUCTIONS)
def reductions(torch, name):
    yield from all_shown(
        torch,
        f"""
        m.{name}()
        torch.{name}(m)
        m.{name}(0)
        torch.{name}(m, dim=1)
        m.{name}(dim=1, keepdim=True)
        m.{name}(1, dtype=torch.float64)
        m.{name}((0, 1))
        make(d, ~k & k).{name}()
        make(torch.arange(6).view(2, 3), k).amin().{name}() if "{name}" == "sum" else 0
        """,
    )


@case
def further_functions(torch):
    yield from all_shown(
        torch,
        """
        make(k, k).all(), make(~k, k).all(dim=0), make(k, k).all(1)
        masked.sum(m), masked.sum(m, 0), masked.mean(m, 1), masked.amax(m, 1, mask=k)
        masked.softmax(m, 1), masked.prod(m), masked.argmax(m, 1), masked.norm(m, 2, 1)
        torch.softmax(m, 1), m.softmax(0), F.softmax(m, dim=-1), torch.nn.Softmax(1)(m)
        make(torch.arange(6).view(2, 3), k).softmax(1)
        make(d, ~k & k).softmax(1)
        torch.where(d > 2, m, m * 2), torch.where(k, m, d), torch.where(k, m, 0.0)
        m[0, 0].item(), float(m[0, 0]), int(m[1, 2]), bool(m[0, 0])
        m[0, 1].item()
        m.tolist()
        m.numpy()
        m.clone(), m.detach(), m.to(torch.float64), m.int(), m.bool(), m.half(), m.cpu()
        m.to(torch.float64).dtype, m.long().dtype, m.type(torch.int32).dtype, m.double()
        torch.ones_like(m), m.clone().copy_(m), m.clone().copy_(d), m.is_same_size(m)
        torch.isclose(m, m), F.dropout(m, 0.0)
        f"{m[0, 0]}", f"{m}"
        f"{m[0, 0]:.2f}"
        __import__("copy").deepcopy(m), __import__("copy").copy(m)
        __import__("pickle").loads(__import__("pickle").dumps(m))
        torch.testing.assert_close(m, m)
        torch.nn.Parameter(m)
        F.relu(m)
        torch.equal(m, m)
        """,
    )


@case.over(
    *("v.sum()", "v * 2", "v * v", "v.mean()", "v.mean(1)", "v.sqrt()", "v.log()"),
    *("v.prod()", "v.amax(1)", "v.amin()", "v.softmax(1) * d", "v.view(6)", "v.exp()"),
    *("v.std()", "v.var(1)", "torch.cat([v, v])", "v.double() * 2", "v.t() * 2"),
    *("v.clone()", "v.t().contiguous()", "v + d", "v / d", "v ** 3", "v.abs()"),
    *("v.get_data() * 3", "v.to_tensor(7) * 2", "v.to_sparse_csr().to_dense() * 2"),
)
@quietly
def gradients(torch, text):
    scope = scope_of(torch)
    leaf = scope["make"](scope["d"], scope["k"], requires_grad=True)
    result = eval(text, scope | {"v": leaf})
    yield str(result), result.requires_grad, result.is_leaf
    (result if result.dim() == 0 else result.sum()).backward()
    yield str(leaf.grad), leaf.grad.to_tensor(0), leaf.grad.get_mask()
    (again,) = torch.autograd.grad((leaf * leaf).sum(), leaf)
    yield str(again)
    torch.autograd.backward((leaf * leaf).sum())
    yield str(leaf.grad)


@case
@quietly
def gradients_through_parts(torch):
    scope = scope_of(torch)
    d, k = scope["d"], scope["k"]
    data = d.clone().requires_grad_()
    made = scope["as_masked"](data * 2, k)
    yield made.requires_grad, made.is_leaf, str(made)
    numbers = torch.tensor([-10.0, -5, 0, 5, 10, 50, 60, 70, 80, 90, 100])
    small = numbers < 0
    a = scope["make"](numbers, small, requires_grad=True)
    b = scope["make"](torch.ones_like(numbers), ~small, requires_grad=True)
    seen = []
    a.register_hook(lambda grad: seen.append(str(grad)))
    found = torch.where(small, torch.exp(a), b)
    found.sum().backward()
    yield str(found), str(a.grad), str(b.grad), seen
    leaf = scope["make"](d, k, requires_grad=True)
    leaf.sum().backward()
    leaf.sum().backward()
    yield str(leaf.grad), str((leaf * 2).detach()), (leaf * 2).detach().requires_grad
    (leaf * 2).backward(scope["make"](torch.ones(2, 3), k))
    yield str(leaf.grad)
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        (leaf * 2).backward()
    checkpoint = importlib.import_module(
        f"{torch.__name__}.utils.checkpoint"
    ).checkpoint
    leaf.grad = None
    checkpoint(lambda t: t * t, leaf, use_reentrant=False).sum().backward()
    yield str(leaf.grad)


@case.over("coo", "csr")
def sparse_data(torch, layout):
    yield from all_shown(
        torch,
        """
        s, s.layout, s.is_sparse, s.is_sparse_coo(), s.is_sparse_csr(), s.shape
        s.to_dense(), s.get_data().to_dense(), s.get_mask().to_dense(), s + s, s * 2
        s.exp(), s.sum(), s.amax(), s.mean(), s.prod(), s.abs(), s.clone(), s.sqrt()
        s / s, s.to_dense().layout
        s.sum(0)
        s.argmax()
        s.argmin()
        m.to_sparse(), m.to_sparse().layout, m.to_sparse_csr(), m.to_sparse_csr().layout
        m[0].to_sparse_csr()
        make(s.get_data(), (~k).to_sparse_coo().coalesce())
        make(s.get_data(), (~k).to_sparse_csr())
        """,
        s=scope_of(torch)["sparse"](layout),
    )


@case
def backward_of_tensors_that_are_made_of_others(torch):
    jagged = torch.nested.nested_tensor(
        [torch.ones(2, 3), torch.ones(1, 3)], layout=torch.jagged, requires_grad=True
    )
    torch.autograd.backward(jagged * 2, torch.ones_like(jagged))
    yield list(jagged.grad.unbind())
    sparse = torch.eye(3).to_sparse().requires_grad_()
    torch.autograd.backward(sparse * 2, torch.eye(3).to_sparse())
    yield sparse.grad.to_dense()
    torch.autograd.backward(sparse * 3, torch.eye(3).to_sparse(), inputs=[sparse])
    yield sparse.grad.to_dense()


@case
def what_pytorch_s_own_tests_ask_for(torch):
    inner = importlib.import_module(f"{torch.__name__}.masked.maskedtensor")
    unary, binary, reductions = (
        importlib.import_module(f"{inner.__name__}.{name}")
        for name in ("unary", "binary", "reductions")
    )
    yield unary.UNARY_NAMES, binary.BINARY_NAMES, reductions.REDUCE_NAMES
    yield sorted(unary.INPLACE_UNARY_NAMES), sorted(binary.INPLACE_BINARY_NAMES)
    for functions in (
        unary.NATIVE_UNARY_FNS,
        unary.NATIVE_INPLACE_UNARY_FNS,
        binary.NATIVE_BINARY_FNS,
        binary.NATIVE_INPLACE_BINARY_FNS,
    ):
        yield sorted(function.__name__ for function in functions)
    yield from all_shown(
        torch,
        """
        core._tensors_match(d, d + 1e-7), core._tensors_match(d, d + 1e-7, exact=False)
        core._tensors_match(d, d + 0.1, exact=False, rtol=0, atol=0.2)
        core._tensors_match(d, d[0]), core._tensors_match(d.long(), d)
        core._tensors_match(d, d.to_sparse())
        core._tensors_match(d.to_sparse(), (d + 1e-7).to_sparse(), exact=False)
        core._tensors_match(d.to_sparse_csr(), d.to_sparse_csr())
        core._tensors_match(m, d)
        core._masks_match(m, m * 2), core._masks_match(m, d), core._masks_match(d, d)
        core._masks_match(m, make(d, ~k))
        make(k, k)._is_any_true(), make(~k, k)._is_any_true()
        m._is_any_true()
        make(k.to_sparse(), k.to_sparse())._is_any_true()
        """,
        core=inner.core,
    )


@quietly
def test_what_differs_from_pytorch():
    # As docs/differences.md says: a gradient has the mask of its tensor.
    scope = scope_of(torchshim)
    leaf = scope["make"](scope["d"], scope["k"], requires_grad=True)
    leaf[0].sum().backward()
    assert leaf.grad.get_mask().equal(scope["k"])
