"""Random steps that are equal as recordings and differ in what no path tells.

    python -m tests.fuzz_steps --groups 200 --seed 0

A backward walk is remembered with the recording that it started in. Hooks of leaves,
what their `.grad` is, and what Python code does from within a walk are no part of that:
each step of a group is run after others of its kind, and must give what it gives alone.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator
from typing import Any

from tests.fuzz_core import difference, error_of, unstick
from tests.fuzz_scope import code_of, make_scope

# What a step does: the lines before its forward, after it, and its backward.
Step = tuple[str, ...]

_LEAVES = "x, y, w = (torch.tensor([1.0, k]).requires_grad_() for k in (2, -1, 3))"
_FORWARDS = (
    ("a = x * y", "b = a.exp()", "loss = ((b + w) * x).sum()"),
    ("a = x + y", "b = a * 2", "loss = (b + x + w).sum()"),
    ("a = x * y", "b = a * 2", "b.add_(w)", "loss = (b * b).sum()"),
    ("a = x * y", "read(a)", "b = a * x", "read(b)", "loss = ((b + y) * w).sum()"),
    ("a, b = Halves.apply(x, y)", "loss = (a * w + b).sum()"),
    ("a, b = (x * y).chunk(2)", "loss = (a * a + b).sum() + w.sum()"),
)
_BACKWARDS = (
    *["loss.backward()"] * 4,
    "loss.backward(inputs=[x, y])",
    "gs = torch.autograd.grad(loss, [x, y], allow_unused=True)",
    "loss.backward(retain_graph=True); loss.backward()",
)
# Hooks, each of which does `ACT`.
_HOOKS = (
    "{l}.register_hook(lambda g: (ACT, None)[1])",
    "{l}.register_post_accumulate_grad_hook(lambda p: (ACT, None)[1])",
    "{m}.register_hook(lambda g: (ACT, None)[1])",
    "{m}.grad_fn.register_hook(lambda i, o: (ACT, None)[1])",
)
_LOOK = "log.append('called')"
# What is done to leaves and values, before the backward or by a hook.
_ACTS = (
    _LOOK,
    "{l}.register_hook(count)",
    "{l}.register_hook(double)",
    "{l}.register_post_accumulate_grad_hook(count)",
    "{l}.requires_grad_(False)",
    "setattr({l}, 'grad', None)",
    "setattr({l}, 'grad', torch.ones(2))",
    "setattr({l}, 'grad', {k}.grad)",
    "setattr({l}, 'grad', {k}.detach())",
    "[setattr(t, 'grad', torch.ones(2)) for t in (x, y, w)]",
    "(lambda g: [setattr(t, 'grad', g) for t in (x, y, w)])(torch.ones(2))",
    "setattr({l}, 'grad_dtype', torch.float64)",
    "setattr({l}, 'data', {l}.data.double())",
    "{l}.data.mul_(2)",
    "torch.no_grad()({l}.mul_)(2)",
    "({l} * {k}).sum().backward()",
    "kept.append({l}.expand_as({l}).grad_fn.next_functions[0][0])",
    "kept.append({l}.expand_as({l}).grad_fn.next_functions[0][0].register_hook(count))",
    "{m}.register_hook(double)",
    "{m}.retain_grad()",
    "{m}.sum().backward(retain_graph=True)",
    "read({l}.grad)",
)


def group(rng: random.Random) -> list[Step]:
    """Steps of one kind, some of them several times."""
    forward, backward = rng.choice(_FORWARDS), rng.choice(_BACKWARDS)
    focus = rng.choice("xyw")

    def filled(line: str) -> str:
        leaf = focus if rng.random() < 0.6 else rng.choice("xyw")
        return line.format(l=leaf, k=rng.choice("xyw"), m=rng.choice("ab"))

    def acts(hook: str) -> str:
        nested = "backward" in hook  # would be called within itself
        while True:
            act = filled(rng.choice(_ACTS))
            if not nested and "backward" in act and "grad_fn" not in hook:
                continue
            return hook.replace("ACT", act)

    hook = filled(rng.choice(_HOOKS))
    always = [filled(rng.choice(_HOOKS)).replace("ACT", _LOOK)] * rng.randrange(2)
    by_hook = rng.random() < 0.5

    def step() -> Step:
        does = acts(hook) if by_hook else acts("ACT")
        return (_LEAVES, *forward, *always, does, backward)

    plain: Step = (_LEAVES, *forward, *always, backward)
    if by_hook:
        plain = (_LEAVES, *forward, *always, hook.replace("ACT", _LOOK), backward)
    kinds = [plain, *(step() for _ in range(6))]
    steps = [plain, plain]
    for kind in kinds[1:]:
        steps += rng.choice([[kind], [kind, kind], [kind, plain]])
    return steps + rng.sample(kinds, 4)


def run(torch: Any, step: Step) -> dict[str, Any]:
    """What a step gives."""
    log: list[Any] = []
    scope = make_scope(torch, log)
    scope |= {"log": log, "count": lambda *_: log.append("called"), "gs": ()}
    errors: list[Any] = []
    for line in step:
        try:
            exec(code_of(line), scope)
        except Exception as error:
            errors.append([line, *error_of(error)])
    torch.set_grad_enabled(True)
    values = {n: scope[n] for n in "xyw"}
    values |= {n + ".grad": scope[n].grad for n in "xyw"}
    values |= {n + ".grad": scope[n].grad for n in "ab" if scope[n].retains_grad}
    values |= {f"gs{i}": grad for i, grad in enumerate(scope["gs"])}
    found: dict[str, Any] = {n: shown(value) for n, value in values.items()}
    return found | {"errors": errors, "log": log}


def shown(tensor: Any) -> Any:
    if tensor is None:
        return None
    return [str(tensor.dtype), tensor.requires_grad, tensor.detach().tolist()]


def fresh() -> None:
    """Forgets all that was recorded."""
    from torchshim._core.record import local

    unstick()
    rec = local.rec
    rec.root.next.clear()
    rec.root.places = rec.root.jumps = None
    rec.states = 0


def differing(shim: Any, steps: list[Step]) -> tuple[int, str] | None:
    """The first step that gives something else after those before it than alone."""
    expected = {}
    for step in steps:
        if step not in expected:
            fresh()
            expected[step] = run(shim, step)
    fresh()
    for i, step in enumerate(steps):
        text = difference(expected[step], run(shim, step))
        if text:
            text = text.replace("torch     ", "alone ").replace("torchshim ", "after ")
            return i, text
    return None


def reduced(shim: Any, steps: list[Step]) -> list[Step]:
    """Leaves out steps as long as one still differs."""
    at = 0
    while at < len(steps):
        fewer = steps[:at] + steps[at + 1 :]
        if differing(shim, fewer):
            steps = fewer
        else:
            at += 1
    return steps


def fuzz(shim: Any, seeds: range) -> Iterator[str]:
    """Tells of the groups of these seeds in which a step differs."""
    for seed in seeds:
        steps = group(random.Random(seed))
        if differing(shim, steps):
            small = reduced(shim, steps)
            found = differing(shim, small)
            lines = "\n".join("; ".join(step) for step in small)
            yield f"seed {seed}, {found and found[1]}\n{lines}"


def main() -> int:
    import torchshim

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    bad = 0
    for text in fuzz(torchshim, range(options.seed, options.seed + options.groups)):
        bad += 1
        print(text, end="\n\n", flush=True)
    print(f"{options.groups} groups, {bad} bad")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
