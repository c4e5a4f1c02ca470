"""Random training scripts: a model, an optimizer, and a loop of nine iterations.

    python -m tests.fuzz_training --programs 100 --seed 0

What a recording knows of those before it matters in loops: learnt numbers,
remembered walks, donated inputs, results that arrays of NumPy's or names still hold.
Each script is run once by PyTorch and twice by torchshim, the second time on what the
first left. What it logs must agree: numbers read on the way, and at the end parameters,
gradients, buffers, states of the optimizer and copies.

A script that differs is made shorter and printed. Some that agreed are recorded
(`--record`) and are tests (`tests/test_fuzz.py`).
"""

from __future__ import annotations

import argparse
import copy
import functools
import gc
import gzip
import io
import json
import math
import random
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.compiling import WAYS, run_by
from tests.fuzz_core import error_of, unstick
from tests.fuzz_reduce import reduce
from tests.fuzz_training_programs import ITERATIONS, Lines, program

RECORDED = Path(__file__).parent / "expected" / "fuzz_training.json.gz"

# Differences, relative to the largest number of a tensor.
NEAR = 1e-7


def make_scope(torch: Any, log: list[Any]) -> dict[str, Any]:
    """The names that a script uses."""
    nn, F = torch.nn, torch.nn.functional

    class Residual(nn.Module):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: Any) -> Any:
            return x + self.inner(x)

    class Again(Residual):
        def forward(self, x: Any) -> Any:
            again = torch.utils.checkpoint.checkpoint
            return again(self.inner, x, use_reentrant=False)

    class Scale(nn.Module):
        def __init__(self, size: int) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(size))
            self.bias = nn.Parameter(torch.zeros(size))

        def forward(self, x: Any) -> Any:
            return x * self.weight.exp() + self.bias

    class Noise(nn.Module):
        def forward(self, x: Any) -> Any:
            return x + 0.1 * torch.randn_like(x) if self.training else x

    class Counted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.tensor(0))
            self.last = None

        def forward(self, x: Any) -> Any:
            self.calls += 1
            self.last = x.detach().mean()
            return x * (1 + 0.01 * self.calls)

    class Running(nn.Module):
        def __init__(self, size: int) -> None:
            super().__init__()
            self.register_buffer("mean", torch.zeros(size))

        def forward(self, x: Any) -> Any:
            if self.training:
                with torch.no_grad():
                    self.mean.mul_(0.9).add_(0.1 * x.mean(0))
            return x - self.mean

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * 3 * x**2

    class Cubed(nn.Module):
        def forward(self, x: Any) -> Any:
            return Cube.apply(torch.tanh(x))

    class Mixed(nn.Module):
        def __init__(self, *experts: Any) -> None:
            super().__init__()
            self.experts = nn.ModuleList(experts)
            self.gate = nn.Linear(6, len(experts))

        def forward(self, x: Any) -> Any:
            gates = self.gate(x).softmax(-1)
            outs = torch.stack([expert(x) for expert in self.experts], -1)
            return (outs * gates.unsqueeze(-2)).sum(-1)

    class First(Residual):
        def forward(self, x: Any) -> Any:
            return self.inner(x)[0]

    class Unrolled(Residual):
        def forward(self, x: Any) -> Any:
            state, outs = x.new_zeros(x.shape[0], 6), []
            for t in range(x.shape[1]):
                state = self.inner(x[:, t], state)
                outs.append(state)
            return torch.stack(outs, 1)

    class UnrolledPair(Residual):
        def forward(self, x: Any) -> Any:
            h = c = torch.zeros(x.shape[0], 6)
            outs = torch.zeros_like(x)
            for t, step in enumerate(x.unbind(1)):
                h, c = self.inner(step, (h, c))
                outs[:, t] = h
            return outs

    class Attention(Residual):
        def forward(self, x: Any) -> Any:
            return x + self.inner(x, x, x, need_weights=False)[0]

    class Masked(Residual):
        def forward(self, x: Any) -> Any:
            size = x.shape[1]
            mask = torch.triu(torch.ones(size, size, dtype=torch.bool), 1)
            out, self.weights = self.inner(x, x, x, attn_mask=mask)
            return out

    class Turned(Residual):
        def forward(self, x: Any) -> Any:
            return self.inner(x.transpose(1, 2)).transpose(1, 2)

    class Positions(nn.Module):
        def __init__(self, size: int) -> None:
            super().__init__()
            self.table = nn.Embedding(8, size)

        def forward(self, x: Any) -> Any:
            return x + self.table(torch.arange(x.shape[1], device=x.device))

    class Mean(nn.Module):
        def __init__(self, dim: int) -> None:
            super().__init__()
            self.dim = dim

        def forward(self, x: Any) -> Any:
            return x.mean(self.dim)

    class Last(nn.Module):
        def forward(self, x: Any) -> Any:
            return x[:, -1]

    class ByHand:
        """Gradient descent as scripts write it."""

        def __init__(self, params: Any, lr: float) -> None:
            self.param_groups = [{"params": params, "lr": lr}]

        def zero_grad(self, set_to_none: bool = True) -> None:
            for p in self.param_groups[0]["params"]:
                if p.grad is not None:
                    if set_to_none:
                        p.grad = None
                    else:
                        p.grad.zero_()

        def step(self) -> None:
            with torch.no_grad():
                for p in self.param_groups[0]["params"]:
                    if p.grad is not None:
                        p -= self.param_groups[0]["lr"] * p.grad

        def state_dict(self) -> Any:
            return {"lr": self.param_groups[0]["lr"]}

        def load_state_dict(self, state: Any) -> None:
            self.param_groups[0]["lr"] = state["lr"]

    class Momentum(torch.optim.Optimizer):
        """One that a user wrote."""

        def __init__(self, params: Any, lr: float) -> None:
            super().__init__(params, {"lr": lr, "momentum": 0.9})

        @torch.no_grad()
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    state = self.state[p]
                    if "moved" not in state:
                        state["moved"] = torch.zeros_like(p)
                    state["moved"].mul_(group["momentum"]).add_(p.grad)
                    p.add_(state["moved"], alpha=-group["lr"])

    scope: dict[str, Any] = {}

    def evaluate() -> float:
        model = scope["model"]
        model.eval()
        with torch.no_grad():
            found = model(scope["X"]).sum().item()
        model.train()
        return found

    def through_file(state: Any) -> Any:
        file = io.BytesIO()
        torch.save(state, file)
        file.seek(0)
        return torch.load(file)

    def endless(loader: Any) -> Iterator[Any]:
        while True:
            yield from loader

    def plain(value: Any) -> Any:
        if isinstance(value, (torch.Tensor, np.ndarray)):
            if isinstance(value, torch.Tensor):
                value = value.detach()
            return [str(value.dtype), list(value.shape), value.reshape(-1).tolist()]
        if isinstance(value, dict):
            return [[str(k), plain(v)] for k, v in value.items()]
        if isinstance(value, (list, tuple)):
            return [plain(v) for v in value]
        return value

    def states(optimizer: Any) -> Any:
        return optimizer.state_dict()

    scope |= {k: v for k, v in locals().items() if k not in ("log", "scope")}
    scope |= {
        "log": lambda *values: log.append(plain(values)),
        "F": F,
        "copy": copy,
        "gc": gc,
        "random": random.Random(0),
        "np_random": np.random.default_rng(0),
        "total": 0.0,
        "best": math.inf,
        "kept": None,
        "handle": None,
        **{n: [] for n in ("losses", "arrays", "norms", "hooked", "buffer")},
    }
    return scope


def source(parts: Sequence[Lines]) -> str:
    """A script of lines before its loop, of the loop's body, and after it."""
    before, body, after = parts
    loop = "\n".join(body).replace("\n", "\n    ")
    return "\n".join(
        [*before, f"for i in range({ITERATIONS}):", f"    {loop or 'pass'}", *after, ""]
    )


def run(torch: Any, parts: Sequence[Lines]) -> list[Any]:
    """What a script logs, and the error that it ends with."""
    log: list[Any] = []
    default = torch.get_default_dtype()
    try:
        exec(compile(source(parts), "training.py", "exec"), make_scope(torch, log))
    except Exception as error:
        log.append(["error", *error_of(error)])
    finally:
        torch.set_default_dtype(default)
        torch.set_grad_enabled(True)
    return json.loads(json.dumps(log))


def difference(expected: Any, found: Any) -> str | None:
    """The first difference between two logs."""
    for at, (a, b) in enumerate(zip(expected, found, strict=False)):
        if not _agree(a, b):
            return (
                f"log {at}:\n    torch     {_part(a, b)}\n    torchshim {_part(b, a)}"
            )
    if len(expected) != len(found):
        return f"{len(expected)} and {len(found)} entries: {expected[-1]} {found[-1]}"
    return None


def _part(a: Any, b: Any) -> str:
    """The part of `a` that differs from `b`, as far as it is short."""
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        if not _numbers(a):
            for x, y in zip(a, b, strict=True):
                if not _agree(x, y):
                    return _part(x, y)
    return str(a)[:300]


def _numbers(value: Any) -> bool:
    return isinstance(value, list) and all(type(v) in (int, float) for v in value)


def _agree(a: Any, b: Any) -> bool:
    if not isinstance(a, list) or not isinstance(b, list):
        return _near(a, b, 1e-3)
    if len(a) != len(b):
        return False
    if a and _numbers(a) and _numbers(b):
        size = max([abs(v) for v in a if math.isfinite(v)] + [1e-3])
        return all(_near(x, y, size) for x, y in zip(a, b, strict=True))
    return all(_agree(x, y) for x, y in zip(a, b, strict=True))


def _near(a: Any, b: Any, size: float) -> bool:
    if type(a) is type(b) is float:
        both_nan = a != a and b != b
        return a == b or both_nan or abs(a - b) <= NEAR * max(abs(a), size)
    return type(a) is type(b) and a == b


def judge(torch: Any, shim: Any, parts: Sequence[Lines]) -> str | None:
    """The first difference, or None."""
    expected = run(torch, parts)
    if "derivative for" in str(expected[-1]):
        return None  # torchshim has second ones for more
    for time_ in ("first", "second"):
        found = run(shim, parts)
        unstick()
        text = difference(expected, found)
        if text:
            return f"{time_} run, {text}"
    return None


def reduced(
    torch: Any, shim: Any, parts: tuple[Lines, Lines, Lines], seconds: float
) -> tuple[Lines, Lines, Lines]:
    """A script made shorter, as long as it differs in that way."""
    kept = list(parts)

    def differs_with(which: int, lines: Lines) -> bool:
        tried = [*kept]
        # The dtype and the seed stay.
        tried[which] = [*parts[0][:2], *lines] if which == 0 else lines
        text = judge(torch, shim, tried)
        return text is not None and "'error'" not in text.partition("torchshim")[0]

    for which in (1, 2, 0, 1):
        lines = kept[which][2:] if which == 0 else kept[which]
        lines = reduce(lines, functools.partial(differs_with, which), seconds / 4)
        kept[which] = [*parts[0][:2], *lines] if which == 0 else lines
    return kept[0], kept[1], kept[2]


def fuzz(
    torch: Any, shim: Any, seeds: range, seconds: float
) -> Iterator[tuple[int, str, str]]:
    """(seed, difference, script) of the scripts that differ."""
    for seed in seeds:
        parts = program(random.Random(seed))
        text = judge(torch, shim, parts)
        if text is None:
            continue
        small = reduced(torch, shim, parts, seconds) if seconds else parts
        yield seed, judge(torch, shim, small) or text, source(small)


# Recorded scripts --------------------------------------------------------------------


def record(torch: Any, seeds: range) -> int:
    """Writes what PyTorch gives for the scripts of these seeds; returns how many."""
    found = []
    for seed in seeds:
        parts = program(random.Random(seed))
        log = run(torch, parts)
        if not any("error" in str(entry[0]) for entry in log[-1:]):
            found.append([seed, parts, log])
    text = json.dumps(found, separators=(",", ":"))
    RECORDED.write_bytes(gzip.compress(text.encode(), mtime=0))
    return len(found)


def recorded() -> list[tuple[int, Sequence[Lines], list[Any]]]:
    """Seeds, scripts, and what PyTorch logged."""
    return [
        (seed, parts, log)
        for seed, parts, log in json.loads(gzip.decompress(RECORDED.read_bytes()))
    ]


def main() -> int:
    import torch

    import torchshim

    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reduce", type=float, default=30.0, help="seconds")
    parser.add_argument("--by", choices=WAYS, default="numpy")
    parser.add_argument("--record", action="store_true", help="what PyTorch gives")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.programs)
    if options.record:
        print(f"{record(torch, seeds)} scripts")
        return 0
    run_by(options.by)
    bad, began = 0, time.time()
    for seed, text, script in fuzz(torch, torchshim, seeds, options.reduce):
        bad += 1
        print(f"\n== seed {seed}, {text}\n{script}", flush=True)
    print(f"{options.programs} scripts, {bad} bad, {time.time() - began:.0f} s")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
