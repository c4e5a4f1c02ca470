"""Random programs that run again and again, with other numbers and other gradients.

    python -m tests.fuzz_numbers --programs 1000 --seed 0

What was recorded in one turn is met in the next: a factor that was 2.5 is -0.5 then,
and another of the program's values is differentiated, or read in between. Each turn is
compared with PyTorch's. The programs of `tests.fuzz_core` have the same numbers, and
the same roots, each time.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tests.compiling import WAYS, run_by
from tests.fuzz_core import unstick
from tests.fuzz_reduce import reduce

Lines = list[str]

RECORDED = Path(__file__).parent / "expected" / "fuzz_numbers.json.gz"
TURNS = 9

# Of `a` and `b`, vectors of `m`. `f()` is a float, `i()` an integer from 1 on, `k(n)`
# one below `n`; all are others in each turn, `m` in some.
_VALUES = """
f() * a; a.add(b, alpha=i()); a.sub(b, alpha=f()); f() - a; f() / (a * a + 1); a / f()
(a * a + 0.5) ** i(); (a * a + 0.5) ** f(); abs(f()) ** a.tanh(); a.clamp(max=f())
a.roll(k(m)); a[k(m)] + a; a * a[k(m)]; a.narrow(0, k(2), 2).sum() * a; a + i(); a * b
a[k(2):].sum() + a; torch.where(a > f(), a, b * f()); a.lerp(b, f()); a.sin(); a + b
torch.addcmul(a, a, b, value=f()); F.leaky_relu(a, abs(f())); F.elu(a, abs(f()))
F.threshold(a, f(), f()); F.smooth_l1_loss(a, b, beta=abs(f()) + 0.1) * a
a.clone().mul_(f()); (a * 1).add_(b, alpha=f()); put(a * 1, k(m), b.sum())
put(a * 1, k(m), f()); a.tanh().exp(); a.softmax(-1); a.sum() * a; a.detach() * a
unseen(a, f()) * a; hooked(a * 1, f()); a.masked_fill(a > 0, f()); a.norm() * a
a.expand(2, m).mul(f())[k(2)]; a * torch.full((m,), f(), dtype=a.dtype)
Scale.apply(a, f()); a * torch.tensor(f(), dtype=a.dtype); a[torch.tensor([k(m)] * m)]
a * (b > f()).to(a); a / (b * b + f() ** 2 + 0.1); again(a, f())
(a * a + abs(f())).sqrt(); packed(a * b, f())
torch.func.jvp(scaled(f()), (a.detach(),), (torch.ones_like(a),))[1] * a
torch.func.grad(lambda x, s=scaled(f()): s(x).sum())(a.detach()) * a; several(a, k(3))
torch.func.vmap(scaled(f()))(a); rows(a, k(2), k(m))
(a * 1).view(1, m)[0].add_(b, alpha=f()); outside(a * 1, f()) + a
torch.stack([a * f(), b * f(), a])[k(3)]; a.cumsum(0) * f()
torch.cat([a * f(), b + i()])[k(m):][:m]; (a.repeat(3) * f()).split(m)[k(3)]
a.repeat(m).view(m, m).unbind(k(2))[k(m)] * f(); (a.outer(b) * f()).sum(k(2))
F.layer_norm(a, (m,), eps=abs(f())); a.gather(0, torch.tensor([k(m)] * m))
a.scatter(0, torch.tensor([k(m)]), f())
a.index_add(0, torch.tensor([k(m)]), b[:1], alpha=f())
torch.triu(a.outer(b), k(m) - 1).sum(0); torch.diagonal(a.outer(b), k(m) - 1).sum() * a
torch.addmv(a, a.outer(b), a, beta=f(), alpha=f()); retained(a * f())
-(f() - (i() + a * i()))
"""
_TEXTS = [
    text for each in _VALUES.replace("\n", ";").split(";") if (text := each.strip())
]
_ENDS = """
out.append(torch.autograd.grad(a, [x, b], g, retain_graph=True, allow_unused=True))
out.append(torch.autograd.grad(a, [b], ones(a), retain_graph=True, allow_unused=True))
out.append(second(a))
a.backward(g, retain_graph=True)
a.sum().backward(retain_graph=True)
torch.autograd.backward([a, b], [g, g * 2], retain_graph=True)
optimizer.step()
optimizer.step(); optimizer.zero_grad()
optimizer.param_groups[0].update(lr=abs(f())); optimizer.step()
grow(x, f())
torch.nn.utils.clip_grad_norm_([x, y], abs(f()))
out.append([x.grad, y.grad])
out.append(a)
busy(k(9))
"""


@dataclass(frozen=True)
class Program:
    """Lines that each turn runs; what may come after them; the turns."""

    body: Lines
    ends: list[Lines]
    # The end of each turn, and the seed of its numbers.
    turns: list[tuple[int, int]]
    # Whether leaves and optimizer are those of the turn before.
    lasting: bool

    def script(self) -> str:
        ends = [f"# end {k}: {'; '.join(end)}" for k, end in enumerate(self.ends)]
        turns = f"# (end, seed): {self.turns}, lasting: {self.lasting}"
        return "\n".join([*self.body, *ends, turns])


def program(seed: int) -> Program:
    rng = random.Random(seed)
    names, texts, body = ["x", "y"], _TEXTS, Lines()
    text, a, b = "", "x", "y"
    if lasting := rng.random() < 0.5:
        # Not after they were used: in PyTorch `outer` is two operators.
        body += ["x.requires_grad_(k(4) > 0)", "y.data = y.data * f()"]
    for k in range(rng.randrange(2, 8)):
        # Calls that are equal but for their numbers are what this is about.
        if not k or rng.random() > 0.35:
            text = rng.choice(texts)
        if not k or rng.random() > 0.35:
            a, b = rng.choice(names), rng.choice(names)
        body.append(f"v{k} = {_of(text, a, b)}")
        names.append(f"v{k}")
        if rng.random() < 0.1:
            body.append(rng.choice([f"out.append(v{k})", "busy(k(9))"]))

    def end() -> Lines:
        chosen = rng.choices(_ENDS.strip().split("\n"), k=rng.randrange(1, 4))
        late = [names[-1 - rng.randrange(3)] for _ in chosen]
        return [_of(t, a, rng.choice(names)) for t, a in zip(chosen, late, strict=True)]

    ends = [end() for _ in range(rng.randrange(2, 4))]
    turns = [(rng.randrange(len(ends)), rng.randrange(10**6)) for _ in range(TURNS)]
    return Program(body, ends, turns, lasting)


def _of(text: str, a: str, b: str) -> str:
    """A text with names in place of `a` and `b`."""
    words = "".join(c if c.isidentifier() or c.isdigit() else f"\0{c}\0" for c in text)
    names = {"a": a, "b": b}
    return "".join(names.get(word, word) for word in words.split("\0"))


def run(torch: Any, made: Program) -> list[Any]:
    """What each turn gives, up to an error."""
    found: list[Any] = []
    lasting: dict[str, Any] = {}
    for end, seed in made.turns:
        scope = _scope(torch, random.Random(seed))
        scope.update(lasting)
        if made.lasting:
            lasting = {name: scope[name] for name in ("m", "g", "x", "y", "optimizer")}
        try:
            for line in [*made.body, *made.ends[end]]:
                exec(line, scope)
        except Exception as error:
            scope["out"].append(type(error).__name__)
        try:
            found.append(_plain(scope["out"]))
        except RuntimeError as error:  # of what was deferred
            found.append(type(error).__name__)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value.tolist() if hasattr(value, "tolist") else value


def _scope(torch: Any, rng: random.Random) -> dict[str, Any]:
    m = rng.choice([3, 3, 3, 4, 5])

    def leaf(*values: float) -> Any:
        return torch.tensor(values[:m], dtype=torch.float64, requires_grad=True)

    def f() -> float:
        return rng.choice([-1.5, -0.5, 0.25, 0.75, 1.25, 2.5])

    def put(v: Any, k: int, value: Any) -> Any:
        v[k] = value
        return v

    def unseen(v: Any, factor: float) -> Any:
        with torch.no_grad():
            return v * factor

    def outside(v: Any, factor: float) -> Any:
        v.data.mul_(factor)
        return v

    def hooked(v: Any, factor: float) -> Any:
        if v.requires_grad:
            v.register_hook(lambda grad: grad * factor)
        return v

    def retained(v: Any) -> Any:
        if v.requires_grad:
            v.retain_grad()
        return v

    def scaled(factor: float) -> Any:
        return lambda v: (v * factor).sin() * factor

    def again(v: Any, factor: float) -> Any:
        compute = torch.utils.checkpoint.checkpoint
        return compute(scaled(factor), v, use_reentrant=False)

    def packed(v: Any, factor: float) -> Any:
        hooks = torch.autograd.graph.saved_tensors_hooks
        with hooks(lambda t: t.detach() * 2, lambda t: t / 2):
            return v * v * factor

    def several(v: Any, count: int) -> Any:
        for k in range(count):
            v = v * f() + k
        return v

    def rows(v: Any, row: int, column: int) -> Any:
        made = v.repeat(2).view(2, scope["m"]) * 1
        made[row].mul_(f())
        made[:, column] += f()
        return made[row]

    def second(v: Any) -> Any:
        wrt, more = [scope["x"], scope["y"]], {"allow_unused": True}
        grads = torch.autograd.grad(v, wrt, scope["g"], create_graph=True, **more)
        parts = [(g * g).sum() for g in grads if g is not None and g.requires_grad]
        if not parts:
            return grads
        return *grads, *torch.autograd.grad(sum(parts), wrt, retain_graph=True, **more)

    def grow(v: Any, factor: float) -> None:
        with torch.no_grad():
            v.mul_(factor)

    def busy(count: int) -> None:
        """A recording of its own, with other runtime scalars."""
        z = torch.ones(3, dtype=torch.float64)
        for _ in range(count):
            z = z * f() + rng.randrange(5)
        scope["out"].append(z)

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, v: Any, factor: float) -> Any:
            ctx.factor = factor
            return v * factor

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.factor, None

    scope: dict[str, Any] = {
        "torch": torch,
        "F": torch.nn.functional,
        "Scale": Scale,
        "f": f,
        "i": lambda: rng.randrange(1, 5),
        "k": rng.randrange,
        "m": m,
        "g": leaf(1.0, 2.0, 3.0, -1.0, 0.5).detach(),
        "x": leaf(0.5, -0.75, 1.25, -0.25, 1.0),
        "y": leaf(1.5, 0.25, -0.5, 0.75, -1.0),
        "ones": torch.ones_like,
        "out": [],
    }
    scope["optimizer"] = torch.optim.SGD(
        [scope["x"], scope["y"]], lr=0.125, momentum=0.5
    )
    functions = [again, busy, grow, hooked, outside, packed, put, retained, rows]
    functions += [scaled, second, several, unseen]
    scope |= {function.__name__: function for function in functions}
    return scope


def compare(expected: list[Any], found: list[Any]) -> str | None:
    """The first turn that differs."""
    for k, (a, b) in enumerate(zip(expected, found, strict=True)):
        if not _near(a, b):
            return f"turn {k}:\n    torch     {a}\n    torchshim {b}"
    return None


def _near(a: Any, b: Any) -> bool:
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(_near, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b) or abs(a - b) <= 1e-8 * max(1.0, abs(a))
    return a == b


def fuzz(seeds: range) -> Iterator[tuple[int, Program, str]]:
    """The programs that differ, made shorter, and how."""
    import torch

    import torchshim

    for seed in seeds:
        made = program(seed)

        def differs(body: Lines, made: Program = made) -> str | None:
            unstick()
            shorter = replace(made, body=body)
            return compare(run(torch, shorter), run(torchshim, shorter))

        if text := differs(made.body):
            body = reduce(made.body, differs, 15.0)
            yield seed, replace(made, body=body), differs(body) or text


def record(seeds: range) -> int:
    """Writes what PyTorch gives for these programs; returns how many there are."""
    import torch

    found = [[s, asdict(made := program(s)), run(torch, made)] for s in seeds]
    text = json.dumps(found, separators=(",", ":"))
    RECORDED.write_bytes(gzip.compress(text.encode(), mtime=0))
    return len(found)


def recorded() -> list[tuple[int, Program, list[Any]]]:
    """The recorded programs and what PyTorch gave."""
    found = json.loads(gzip.decompress(RECORDED.read_bytes()))
    return [(seed, Program(**fields), expected) for seed, fields, expected in found]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--by", choices=WAYS, default="operators", help="what runs them"
    )
    parser.add_argument("--record", action="store_true", help="for the tests")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds = range(options.seed, options.seed + options.programs)
    if options.record:
        print(f"{record(seeds)} programs")
        return 0
    run_by(options.by)
    bad = 0
    for seed, made, text in fuzz(seeds):
        bad += 1
        print(f"\n== seed {seed}: {text}", made.script(), sep="\n", flush=True)
    print(f"{options.programs} programs, {bad} bad")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
