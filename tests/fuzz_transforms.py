"""Random functions within random transforms of `torch.func`, one in another.

    python -m tests.fuzz_transforms --programs 500 --seed 0

Each program is run on PyTorch and on torchshim. What PyTorch refuses is not compared:
torchshim has rules for more.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import random
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.compiling import WAYS, run_by
from tests.fuzz_core import difference, error_of, unstick
from tests.fuzz_reduce import reduce

Lines = list[str]
Shape = tuple[int, ...]

RECORDED = Path(__file__).parent / "expected" / "fuzz_transforms.json.gz"

# Of `a` and `b`, two values of the function, which may have any shape.
_UNARY = """
a.sin(); a.exp(); a.tanh(); a * 2.0; a + 1.5; a.square(); (a * a + 1).sqrt()
a.sigmoid(); torch.relu(a); a.abs(); -a; 1 / (a * a + 2); a.clone(); F.gelu(a)
F.softplus(a); (a.abs() + 0.5).log(); a.pow(3); 2.0 ** a; a.clamp(-0.8, 0.9); F.silu(a)
a.detach(); torch.where(a > 0, a, a * 0.5); a.masked_fill(a > 0.5, 0.3); a.atan()
a.double().float(); F.elu(a); a.contiguous(); torch.ones_like(a) * a; len(a) * a
a.new_zeros(a.shape) + a; torch.full_like(a, 0.3); Cube.apply(a)
a.new_tensor([1.0]) * a; torch.stack([r for r in a]).sum(0); F.dropout(a, 0.5)
torch.randn(a.shape) * a
"""
_BINARY = """
a + b; a * b; a - b; a / (b * b + 1); torch.maximum(a, b); torch.atan2(a, b * b + 1)
a.lerp(b, 0.3); torch.addcmul(a, b, b, value=0.5); F.mse_loss(a, b); a @ b
F.smooth_l1_loss(a, b, reduction="none"); a.add(b, alpha=0.3); torch.stack([a, b])
torch.cat([a.reshape(-1), b.reshape(-1)]); torch.outer(a.reshape(-1), b.reshape(-1))
torch.einsum("i,j->ij", a.reshape(-1), b.reshape(-1)); torch.logaddexp(a, b)
a.reshape(-1, 1) @ b.reshape(1, -1); F.linear(a, b); Scale.apply(a, b)
F.conv1d(a.reshape(1, 1, -1), b.reshape(1, 1, -1)[..., :2])
F.scaled_dot_product_attention(*[t.reshape(1, -1, 1) for t in (a, b, b)])
torch.kron(a.reshape(-1), b.reshape(-1)); F.kl_div(a.log_softmax(-1), b.softmax(-1))
"""
_REDUCING = """
a.sum(); a.mean(); a.sum(-1); a.mean(0); a.prod(); a.prod(-1); a.logsumexp(0); a.max()
a.max(-1).values; a.amax(0); a.var(unbiased=False); a.norm(); a.softmax(-1)
a.log_softmax(0); a.cumsum(0); a.cumprod(-1); a.sort(-1).values; a.topk(2, -1).values
a.median(); a.min(0)[0]; a.flip(0); a.roll(1, 0); a.diff(dim=-1); a.nansum(0); a.std()
a.argmax(-1) * a.sum(-1); F.avg_pool1d(a.reshape(1, 1, -1), 2); torch.fft.rfft(a).abs()
F.max_pool1d(a.reshape(1, 1, -1), 2); F.nll_loss(a.reshape(1, -1), torch.tensor([0]))
"""
_VIEWS = """
a.reshape(-1); a.unsqueeze(0); a[0]; a[-1]; a[..., 1:]; a[..., ::2]; a[None]
a.transpose(0, -1); a.expand(2, *a.shape); a.select(-1, 0); a.narrow(0, 0, 1)
a.flatten(); a.movedim(0, -1); a.squeeze(); a.split(1, -1)[0]; a.chunk(2, 0)[-1]
a.unbind(0)[-1]; a.unfold(-1, 2, 1); a.view(-1); a.mT; a.tile(2); F.pad(a, (1, 1))
a[torch.tensor([0, 0])]; a[..., [0]]; a.index_select(0, torch.tensor([0]))
a.gather(-1, torch.zeros_like(a[..., :1], dtype=torch.long)); torch.diag_embed(a)
a.scatter(0, torch.zeros_like(a[:1], dtype=torch.long), a[:1] * 2)
a.index_add(0, torch.tensor([0]), a[:1]); a.repeat_interleave(2, 0)
"""
_IN_PLACE = """
a.mul_(2.0); a.add_(b); a.sin_(); a[0] = 1.5; a[0] = b[0]; a[..., 0] += 1; a.copy_(b)
a.zero_(); a[:1].mul_(3); a.transpose(0, -1).add_(1); a.fill_(0.7); a[a > 0.4] = 0.1
a.clamp_(min=0.1); a.unsqueeze(0).mul_(2); a.index_add_(0, torch.tensor([0]), b[:1])
a.masked_fill_(a > 0.5, 0.0); a *= b; a.select(0, 0).copy_(b.select(0, 0)); a.tolist()
a.index_fill_(0, torch.tensor([0]), 0.3); a.sub_(b, alpha=0.5)
"""
_KINDS = [
    (weight, [n.strip() for n in text.replace("\n", ";").split(";") if n.strip()])
    for weight, text in (
        (5, _UNARY),
        (4, _BINARY),
        (3, _REDUCING),
        (4, _VIEWS),
        (3, _IN_PLACE),
    )
]

# How a function `f` is transformed to another one of the same arguments.
_TRANSFORMS = (
    *["vmap"] * 4,
    *["{g} = grad(lambda x, y: total({f}(x, y)), argnums={n})"] * 3,
    "{g} = grad_and_value(lambda x, y: total({f}(x, y)), argnums={i})",
    "{g} = grad(lambda x, y: (total({f}(x, y)), x * y.sum()), {i}, has_aux=True)",
    *["{g} = lambda x, y: jvp({f}, (x, y), (x.cos(), torch.ones_like(y)))"] * 2,
    *["{g} = lambda x, y: pulled({f}, x, y)"] * 2,
    "{g} = jacrev({f}, argnums={n})",
    "{g} = jacfwd({f}, argnums={n})",
    "{g} = hessian(lambda x, y: total({f}(x, y)), argnums={i})",
    "{g} = lambda x, y: on_a_copy({f}, x, y)",
    "{g} = lambda x, y: total({f}(x, y)) * x - y.sum()",
    "{g} = lambda x, y: without_and_with_grad({f}, x, y)",
)
_AROUND = (
    *["result = {f}(X, Y)"] * 4,
    "X.requires_grad_(); result = {f}(X, Y)",
    *[
        "X.requires_grad_(); Y.requires_grad_(); result = {f}(X, Y); "
        "total(result).backward(); result = result, X.grad, Y.grad"
    ]
    * 2,
    "result = dual({f}, X, Y)",
)

_PRELUDE = """
F = torch.nn.functional
vmap, grad, grad_and_value = torch.func.vmap, torch.func.grad, torch.func.grad_and_value
jvp, vjp, hessian = torch.func.jvp, torch.func.vjp, torch.func.hessian
jacrev, jacfwd = torch.func.jacrev, torch.func.jacfwd


class Cube(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return 3 * ctx.saved_tensors[0] ** 2 * g

    @staticmethod
    def jvp(ctx, t):
        return 3 * ctx.saved_tensors[0] ** 2 * t


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(x, y):
        return x * y.sum()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return y.sum() * g, (x * g).sum().expand(y.shape)

    @staticmethod
    def vmap(info, in_dims, x, y):
        n, (at, other) = info.batch_size, in_dims
        x = x.expand(n, *x.shape) if at is None else x.movedim(at, 0)
        y = y.expand(n, *y.shape) if other is None else y.movedim(other, 0)
        return x * y.reshape(n, -1).sum(1).reshape(n, *[1] * (x.dim() - 1)), 0


def flat(value):
    if isinstance(value, (tuple, list)):
        return [t for each in value for t in flat(each)]
    return [value]


def total(value):
    return sum(t.sum() for t in flat(value))


def pulled(f, x, y):
    out, pull = vjp(f, x, y)
    if isinstance(out, tuple):
        return pull(tuple(t.sin() for t in out))
    return pull(out.sin())


def on_a_copy(f, x, y):
    copy = x.clone().mul_(2)
    out = f(copy, y)
    return out, copy.add_(1)


def without_and_with_grad(f, x, y):
    with torch.no_grad():
        first = total(f(x, y))
    return total(f(x, y)) + first * x.sum()


def dual(f, x, y):
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        out = f(forward.make_dual(x, x.cos()), y)
        pairs = [forward.unpack_dual(t) for t in flat(out)]
        return [(a, torch.zeros_like(a) if b is None else b) for a, b in pairs]
"""


def program(seed: int) -> Lines:
    """The lines of a program."""
    rng = random.Random(seed)
    shapes = [
        rng.choice([(3,), (2, 3), (3,), ()]),
        rng.choice([(3,), (2, 3), (3,)]),
    ]
    lines = _function(rng)
    count = rng.choice([1, 1, 2, 2, 2, 3, 3])
    for level in range(count):
        f, g = f"f{level}", f"f{level + 1}"
        how = rng.choice(_TRANSFORMS)
        if how == "vmap":
            lines.append(f"{g} = vmap({f}, {_mapped(rng, shapes)})")
        else:
            i, n = rng.randrange(2), rng.choice([0, 1, (0, 1)])
            lines.append(how.format(f=f, g=g, i=i, n=n))
    for name, shape in zip("XY", shapes, strict=True):
        values = [round(rng.uniform(-1.2, 1.6), 2) for _ in range(math.prod(shape))]
        lines.append(f"{name} = torch.tensor({values}).reshape({shape}).clone()")
    lines.append("torch.manual_seed(3)")
    lines.append(rng.choice(_AROUND).format(f=f"f{count}"))
    return lines


def _function(rng: random.Random) -> Lines:
    names, lines = ["x", "y"], ["def f0(x, y):"]
    weights = [weight for weight, _ in _KINDS]
    for _ in range(rng.randrange(2, 7)):
        _, texts = rng.choices(_KINDS, weights)[0]
        text = rng.choice(texts)
        a = rng.choice(names[-3:] if rng.random() < 0.7 else names)
        values = {"a": a, "b": rng.choice(names)}
        line = "".join(values.get(part, part) for part in _parts(text))
        if texts is not _KINDS[-1][1]:
            names.append(f"t{len(names)}")
            line = f"{names[-1]} = {line}"
        lines.append(f"    {line}")
    out = names[-1]
    if rng.random() < 0.2:
        out = f"({out}, {rng.choice(names)})"
    return [*lines, f"    return {out}"]


def _parts(text: str) -> Iterator[str]:
    """An expression in pieces, names apart."""
    word = ""
    for letter in text:
        if letter.isalnum() or letter == "_":
            word += letter
            continue
        yield from (word, letter)
        word = ""
    yield word


def _mapped(rng: random.Random, shapes: list[Shape]) -> str:
    """Arguments of `vmap`; the shapes are those of what it maps from then on."""
    size, dims = rng.choice([2, 3]), []
    for i, shape in enumerate(shapes):
        if rng.random() < 0.3 and (i == 0 or dims[0] is not None):
            dims.append(None)
            continue
        at = rng.randrange(len(shape) + 1)
        shapes[i] = (*shape[:at], size, *shape[at:])
        dims.append(at - len(shapes[i]) if rng.random() < 0.2 else at)
    options = f"in_dims=({dims[0]}, {dims[1]})"
    if rng.random() < 0.35:
        options += f", randomness={rng.choice(['same', 'different'])!r}"
    return options + ", chunk_size=2" * (rng.random() < 0.15)


def run(torch: Any, lines: Lines) -> dict[str, Any]:
    """What a program gives, and makes of its arguments, or the error."""
    scope: dict[str, Any] = {"torch": torch}
    exec(_PRELUDE, scope)
    try:
        exec("\n".join(lines), scope)
        shown = scope["flat"]([scope["result"], scope["X"], scope["Y"]])
        return {"values": [_shown(value) for value in shown]}
    except Exception as error:
        return {"error": error_of(error)}


def _shown(value: Any) -> Any:
    if value is None or not hasattr(value, "tolist"):
        return value
    return [str(value.dtype).split(".")[-1], value.detach().tolist()]


def compare(expected: dict[str, Any], found: dict[str, Any]) -> str | None:
    """What differs, where PyTorch takes the program."""
    if "error" in expected:
        return None
    if any(n != n or abs(n) > 1e6 for n in _numbers(expected["values"])):
        return None
    return difference(expected, found)


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _numbers(each)


def fuzz(seeds: range) -> Iterator[tuple[int, Lines, str]]:
    """The programs that differ, made shorter, and how."""
    import torch

    import torchshim

    def differs(lines: Lines) -> str | None:
        unstick()
        return compare(run(torch, lines), run(torchshim, lines))

    for seed in seeds:
        lines = program(seed)
        if differs(lines):
            lines = reduce(lines, differs, 15.0)
            yield seed, lines, differs(lines) or ""


def record(seeds: range) -> int:
    """Writes what PyTorch gives for these programs; returns how many it takes."""
    import torch

    made = [(program(seed), seed) for seed in seeds]
    found = [[seed, lines, run(torch, lines)] for lines, seed in made]
    kept = [each for each in found if "values" in each[2]]
    text = json.dumps(kept, separators=(",", ":"))
    RECORDED.write_bytes(gzip.compress(text.encode(), mtime=0))
    return len(kept)


def recorded() -> list[tuple[int, Lines, dict[str, Any]]]:
    """The recorded programs and what PyTorch gave."""
    return json.loads(gzip.decompress(RECORDED.read_bytes()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--by", choices=WAYS, default="numpy", help="what runs them")
    parser.add_argument("--record", action="store_true", help="for the tests")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds = range(options.seed, options.seed + options.programs)
    if options.record:
        print(f"{record(seeds)} programs")
        return 0
    run_by(options.by)
    bad = 0
    for seed, lines, text in fuzz(seeds):
        bad += 1
        print(f"\n== seed {seed}: {text}", *lines, sep="\n", flush=True)
    print(f"{options.programs} programs, {bad} bad")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
