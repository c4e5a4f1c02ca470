"""Wrong calls: what PyTorch's argument parser says, and what functions say."""

import os
import subprocess
import sys

import pytest

from tests.oracle import attempt, case

# Types, missing and surplus arguments, keywords, positions; one text for each rule.
PARSED = """
torch.sum(x, foo=1)
torch.sum(x, "a")
torch.sum(x, dim="a")
torch.sum(x, 1, 2, 3, 4, 5)
torch.sum(x, dim=1.0, keepdim=True, dtype="a")
torch.sum(x, dim=["a", 0])
torch.sum(x, dim=[0, "a"])
torch.sum(None)
torch.sum(foo=1, bar=2, baz=3)
torch.sum(x, 1, axis=0)
x.sum(True)
x.sum(keepdim=True)
torch.sum(x, keepdim=True)
x.mean(keepdim=True)
x.prod(keepdim=True)
x.nansum(keepdim=True)
x.nanmean(keepdim=True)
x.logsumexp(keepdim=True)
x.flip()
torch.flip(x, 0)
torch.flip(x, 0, 1)
torch.flip(x, dims=0)
torch.permute(x, 1, 0)
torch.permute(x, True)
torch.permute_copy(x, 1, 0)
torch.reshape(x, 6)
torch.reshape(x, 3, 2)
torch.reshape(x, torch.tensor(6))
torch.tile(x, 2)
torch.broadcast_to(x, 2, 3)
torch.expand_copy(x, 2, 3)
x.flip(dims=0)
torch.flip(x)
x.tile()
x[0, 0].view()
x[0, 0].reshape()
x[0, 0].expand()
x[0, 0].permute()
x.repeat()
x.flip(())
x.tile([])
torch.var(x, 0, unbiased=None)
torch.std(x, unbiased=None)
x.var(0, None)
x.std(unbiased=True, keepdim=True)
torch.var_mean(x, 0, None)
torch.std_mean(x, 0, unbiased=None)
x.sum(foo=2)
x.sum(1, foo=2)
x.sum(1, 2, 3)
torch.Tensor.sum(2)
torch.add(x, x, alpha="a")
torch.add(x)
torch.add()
torch.add(x, None)
torch.divide(x, "a")
torch.absolute("a")
torch.absolute(input="a")
x.view("a")
x.view(2, "a")
x.view(["a", 2])
x.view()
x.reshape()
x.reshape(2.0, 2)
x.reshape(-1, 1.5)
x.permute("a", 0)
x.expand("a", 3)
x.tile(1.5)
x.squeeze(None)
x.squeeze(True)
torch.relu("a")
torch.relu(input="a")
torch.relu(x, foo=1)
torch.relu(x, input=x)
torch.cat(x)
torch.cat([x, 1])
torch.cat([x, x], dim="a")
torch.stack([x, None])
torch.softmax(x)
torch.softmax(x, dim="a")
torch.softmax(x, 1.5)
torch.matmul(x, 1)
torch.matmul(x)
x.matmul()
torch.mean(x, 1.5)
torch.std(x, 1.5)
torch.max(x, "a")
torch.max(x, 1, keepdim="a")
torch.argmax(x, 1, keepdim=torch.tensor(True))
torch.clamp(x, "a", 1)
torch.clamp(x, x, 1)
torch.where(x, x, "a")
torch.topk(x, "a")
torch.topk(x, 1, 2, 3, 4, 5, 6)
torch.transpose(x, 0)
torch.unsqueeze(x)
torch.unsqueeze(x, True)
torch.flatten(x, "a")
torch.index_select(x, 0, [1])
torch.tril(x, True)
torch.sort(x, stable=2)
torch.hsplit(x, "abc")
torch.split(x, "a")
x.split([1, "a"])
torch.nonzero(x, as_tuple="a")
torch.special.zeta(2, 3)
torch.special.xlog1py(2, 3)
torch.linalg.norm(x, dim="a")
torch.fft.fft(x, n="a")
torch.conv2d(x, x, None, "a")
torch.conv2d(x, x, stride="a")
torch.conv2d(x, x, None, [1, "a"])
torch.embedding(x, "a")
torch.layer_norm(x, 3)
torch.nn.functional.linear(x)
torch.nn.functional.linear(x, "a")
torch.nn.functional.cross_entropy(x, "a")
torch.nn.functional.pad(x, 1)
torch.nn.functional.gelu(x, approximate=1)
torch.ones("a")
torch.zeros(2, "a")
torch.zeros("a", 2)
torch.zeros(2, dtype="a")
torch.full((2,), "a")
torch.arange("a")
torch.randn("a")
torch.tensor()
torch.tensor([1], dtype="a")
torch.tensor([1], foo=1)
x.to("cpu", 1, 2, 3)
x @ 3
x + None
x + "a"
~x
torch.Tensor.__radd__(2, x)
"""

# What the functions say themselves about shapes and values.
REFUSED = """
torch.baddbmm(x, x, x)
torch.allclose(x, x[:, :2])
torch.normal(x, x[:, :2])
torch.roll(torch.tensor(1.0), 0, 0)
torch.ones([1] * 65).amax(0)
F.conv2d(ones(1, 3, 8, 8), ones(4, 3))
F.conv2d(ones(1, 3, 8, 8), ones(4, 3, 3), padding="same")
F.conv2d(ones(1, 3, 8, 8), ones(4, 3, 3, 3), dilation=-1)
F.conv1d(ones(1, 3, 8), ones(4, 3, 3, 3))
F.conv_transpose1d(ones(3, 8, 8), ones(3, 4, 3, 3))
nn.Conv2d(3, 4)
nn.ConvTranspose1d(3)
F.batch_norm(x, ones(3).double(), ones(3).double())
nn.BatchNorm1d(3)(ones(2, 4))
nn.BatchNorm2d(3)(ones(2, 4, 5, 5))
nn.LayerNorm(3)(ones(2, 3).long())
F.rms_norm(ones(2, 2, 3), (2, 2))
F.cross_entropy(ones(3), ones(2).long())
F.mse_loss(x, 1.0)
F.multilabel_margin_loss(ones(0), ones(0).long())
F.multilabel_margin_loss(x, x)
F.multi_margin_loss(x, ones(2))
F.embedding(ones(2).bool(), ones(3, 4))
F.max_pool1d(ones(1, 1, 4), (2, 2))
F.max_pool1d(ones(0, 4), 2)
F.max_pool1d(ones(2, 2, 2), kernel_size=5, stride=1)
F.max_pool1d(ones(1, 1, 9), 2, padding=4)
F.max_pool1d(ones(1, 1, 9), 2, padding=4, return_indices=True)
F.max_pool3d(ones(1, 0, 4, 4, 4), 2)
F.avg_pool2d(ones(1, 1, 4, 4).bool(), 2)
F.avg_pool3d(ones(1, 1, 2, 2, 2), 3)
F.scaled_dot_product_attention(ones(1, 2, 3), ones(1, 2, 3), ones(1, 2, 3), ones(3, 3))
ones(2, 3).long().masked_fill(x > 0, torch.tensor(1j)).tolist()
torch.ormqr(ones(5, 0).long(), ones(5).long(), ones(5, 5).long(), True, True)
torch.gather(x, 0, ones(2, 3).long() - 1, out=x.double())
torch.gather(x[0], 0, index, out=x[0])
torch.index_select(x, 1, index[:2], out=ones(2, 1).expand(2, 2))
torch.take(index, index, out=index)
torch.kthvalue(x[0], 2, out=(x[0], index))
torch.masked_select(y, y > 0, out=y)
torch.cat([x, x[:0]], out=x)
torch.aminmax(x, dim=0, out=(ones(3), ones(3).double()))
torch.multinomial(x, 1, out=x)
nn.utils.clip_grad_norm_(x, "a")
"""


def _shown(torch, lines):
    nn = torch.nn
    ones, index = torch.ones, torch.tensor([0, 1, 2])
    scope = {"torch": torch, "nn": nn, "F": nn.functional, "ones": ones}
    for line in lines.strip().splitlines():
        scope |= {"x": torch.ones(2, 3), "y": torch.ones(3), "index": index.clone()}
        code = compile(line, "<case>", "eval")
        yield line, attempt(eval, code, scope)


@case
def parsed(torch):
    yield from _shown(torch, PARSED)


@case
def refused(torch):
    yield from _shown(torch, REFUSED)


@case
def what_looks_wrong_and_is_not(torch):
    import numpy as np

    x = torch.ones(2, 3)
    yield x.sum(np.int64(1)), x.sum(torch.tensor(1)), x.sum(dim=()), x.sum(axis=[0])
    yield x.view(np.int64(6)), x.reshape(torch.Size([3, 2])), x.view((3, 2))
    yield torch.broadcast_to(x, (2, 3)), torch.tile(x, (1,)), x.tile(2)
    yield x.squeeze(()), x[:1].squeeze(), x[:1].squeeze(0), x[:1].squeeze((0, 1))
    yield torch.sub(1, x), x + np.bool_(True), torch.clamp(x, None, 0.5)
    yield torch.ones(size=(2,)), x.permute(dims=(1, 0)), x.sum(1, keepdims=True)


@case
def names_of_numpy(torch):
    x, index = torch.arange(6.0).view(2, 3), torch.tensor([[0, 1, 0]])
    first = index[0, :1]
    # With and without a default, forms of several operators, written in Python.
    yield x.sum(axis=1, keepdims=True), torch.sum(x=x, axis=0), torch.sum(a=x)
    yield torch.logsumexp(x, axis=-1), x.logsumexp(axis=(0, 1), keepdims=True)
    yield x.softmax(axis=1), torch.cumsum(x, axis=0), x.unsqueeze(axis=1)
    yield x.max(axis=1, keepdims=True), torch.min(x, axis=0), x.median(axis=1)
    yield torch.gather(x, axis=0, index=index), x.index_select(axis=1, index=first)
    yield x.chunk(2, axis=1), torch.unbind(x, axis=1), x.select(axis=0, index=1)
    yield x.narrow(axis=1, start=0, length=2), x.repeat_interleave(2, axis=0)
    yield x.scatter(axis=0, index=index, src=x), torch.cross(x, x + 1, axis=1)
    yield torch.linalg.norm(x, axis=0), torch.fft.fft(x, axis=0), torch.diff(x, axis=0)
    softmax = torch.nn.functional.softmax
    yield attempt(softmax, x, axis=0), attempt(x.chunk, 2, axes=1)
    yield attempt(x.cumsum, 0, axis=0), attempt(x.unbind, 0, axis=0)


@case
def after_refusals_everything_is_as_it_was(torch):
    w = torch.ones(3, requires_grad=True)
    loss = (w * 2).sum()
    for wrong in (lambda: w.sum("a"), lambda: w.view(2), lambda: torch.relu(w, 1, 2)):
        with pytest.raises((TypeError, RuntimeError)):
            wrong()
    loss.backward()
    return loss, w.grad


def test_parameters_have_the_names_that_the_parser_knows():
    import torchshim as torch
    from torchshim import _parser

    wrong = []
    for space in ("torch", "linalg", "special", "fft", "nn.functional"):
        module = torch
        for part in space.split(".") if space != "torch" else ():
            module = getattr(module, part)
        for name, function in vars(module).items():
            found = _parser.signatures(space, name)
            op = getattr(function, "__op__", None)
            if not found or op is None:
                continue
            known = {p.name for s in found for p in s.params}
            wrong += [
                f"{space}.{name}: {p.name}"
                for p in op.params
                if p.name not in known and p.name not in ("A", "x")
            ]
    assert wrong == []


def test_calls_that_no_frame_shows():
    import torchshim as torch

    x = torch.ones(2, 3)
    with pytest.raises(TypeError, match=r"softmax\(\): argument 'dim' \(position 2\)"):
        list(map(torch.softmax, [x], ["a"]))
    with pytest.raises(RuntimeError, match="shape '\\[4\\]' is invalid"):
        torch.reshape(*(x, (4,)))


@case
def errors_of_calls_with_spread_arguments(torch):
    x, wrong = torch.ones(2), (torch.zeros(2).int(), torch.zeros(2).long())
    for named in ({}, {"stable": True}, {"stable": True, "out": wrong}):
        named = {"dim": 0, "descending": True, **named}
        yield attempt(lambda: torch.sort(*(x,), **named))  # noqa: B023
        yield attempt(lambda: torch.sort(*(x,), **{**named, "dim": 3}))  # noqa: B023
    yield attempt(lambda: torch.add(*(x, 2), **{"alpha": "a"}))
    yield attempt(lambda: x.sum(*("a",)))


@case
def deprecated_forms(torch):
    """The forms of `add` and its kind in which a factor stands among the tensors."""
    a, b, c, m = (
        torch.ones(3),
        torch.full((3,), 2.0),
        torch.full((3,), 3.0),
        torch.eye(3),
    )
    yield a.clone().add_(0.5, b), a.add(2, b), torch.add(a, 2, b)
    yield torch.add(a, 2, b, out=torch.empty(3)), a.sub(2, b), torch.sub(a, 0.5, b)
    yield a.clone().addcmul_(2, b, c), a.addcmul(2, b, c), torch.addcmul(a, 2, b, c)
    yield a.clone().addcdiv_(-0.1, b, c), torch.addcdiv(a, 0.1, b, c)
    yield torch.addmm(2, m, 3, m, m), m.addmm(2, m, m), m.clone().addmm_(2, 3, m, m)
    yield a.addmv(2, m, b), torch.addr(2, m, 3, a, b), m.addr(2, a, b)
    yield m.addbmm(2, m[None], m[None]), torch.baddbmm(2, m[None], 3, m[None], m[None])
    w = torch.ones(3, requires_grad=True)
    w.add(2, w * w).sum().backward()
    yield w.grad, a.add_(torch.tensor(0.5), b)
    yield attempt(a.add, 0.5, b, c), attempt(a.add, b, b, b)
    yield attempt(lambda: torch.addcmul(a, b, c, 2)), attempt(a.add, 1, b, alpha=2)


@case
def warnings_name_the_line_of_the_program(torch):
    import warnings

    F, x = torch.nn.functional, torch.ones(3, 4)
    lines = (
        lambda: F.softmax(x),
        lambda: F.log_softmax(x),
        lambda: F.mse_loss(x, x[0]),
        lambda: F.l1_loss(x, x[0]),
        lambda: F.dropout2d(x),
        lambda: F.kl_div(x, x),
        lambda: F.grid_sample(torch.ones(1, 1, 2, 2), torch.zeros(1, 2, 2, 2)),
        lambda: F.gumbel_softmax(x, eps=1e-3),
        lambda: torch.var(torch.ones(1)),
        lambda: x.resize(4, 3),
    )
    for line in lines:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            line()
        for each in caught:
            yield each.filename == __file__, each.lineno == line.__code__.co_firstlineno


@case
def calls_in_long_functions(torch):
    """How a call was written is read off the end of the code that ran before it."""
    text = "def found(x):\n" + "    [x, 'a', x]\n" * 2000 + "    return "
    for call in (
        *("x.reshape()", "x.reshape(())", "x.reshape(shape=())", "torch.flip(x)"),
        *("x.sum(keepdim=True)", "x.sum(0, 1, 2)", "torch.sum(x, dim='a')"),
    ):
        scope = {"torch": torch}
        exec(text + call, scope)
        yield call, attempt(scope["found"], torch.ones(1))


def test_sizes_that_no_frame_shows():
    import functools

    import torchshim as torch

    x = torch.ones(1)
    calls = (
        functools.partial(x.reshape, ()),
        functools.partial(torch.reshape, x, ()),
        functools.partial(torch.Tensor.reshape, x, shape=()),
    )
    for call in calls:
        assert call().shape == ()
    assert functools.partial(torch.reshape, shape=())(x).shape == ()
    assert next(map(torch.reshape, [x], [()])).shape == ()


# Calls of the package by what has no frame: the caller's code ends at that call.
OVERRUN = """
import functools

import torchshim as torch

x = torch.ones(3)


def store():
    x[torch.tensor(True)] = torch.ones(4)


calls = (
    lambda: list(map(torch.abs, ["a"])),
    functools.partial(torch.sum, "a"),
    lambda: functools.partial(x.sum, "a")(),
    lambda: sorted([1, 2], key=lambda i: x.sum("a")),
    store,
)
for call in calls * 10:
    try:
        call()
    except (TypeError, RuntimeError):
        continue
    raise AssertionError(call)
"""


def test_reading_how_a_call_was_written_stays_within_its_memory():
    done = subprocess.run(
        [sys.executable, "-c", OVERRUN],
        env={**os.environ, "PYTHONMALLOC": "debug"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
