"""Makes random small programs for `tests.fuzz_core`."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np

from tests.fuzz_hooks import hook_line, saving_line
from tests.fuzz_scope import code_of, has_history, make_scope, tensors_of, writes_beside

Lines = list[str]

# How often a loop's body runs again.
LOOPS = 3


class Maker:
    """Makes a program while PyTorch runs it."""

    def __init__(self, torch: Any, rng: random.Random) -> None:
        self.torch = torch
        self.rng = rng
        self.scope = make_scope(torch, [])
        self.lines: Lines = []
        self.names = 0

    def emit(self, line: str) -> None:
        if "[...] = " in line and self.tensors(has_history):
            return  # what NumPy writes before a backward is not followed
        if writes_beside(line, self.scope, self.torch):
            return  # nor is what a tensor made of its array writes
        self.lines.append(line)
        try:
            exec(code_of(line), self.scope)
        except Exception:
            pass

    # Choosing

    def tensors(self, test: Any = None) -> list[str]:
        return [
            n
            for n, t in tensors_of(self.scope, self.torch).items()
            if t.is_floating_point() and (test is None or test(t))
        ]

    def pick(self, test: Any = None) -> str:
        names = self.tensors(test)
        if not names:
            raise LookupError
        # The latest more often than the others.
        if self.rng.random() < 0.3:
            return names[-1]
        return self.rng.choice(names)

    def of(self, name: str) -> Any:
        return self.scope[name]

    def fresh(self) -> str:
        if self.names > 8 and self.rng.random() < 0.5:
            return self.pick()
        self.names += 1
        return f"t{self.names}"

    def number(self) -> str:
        return self.rng.choice(["2.0", "0.5", "-1.5", "3", "2", "(0.5 + k)", "(k + 1)"])

    def other(self, name: str) -> str:
        """Something that goes with a tensor as the other operand."""
        if self.rng.random() < 0.3:
            return self.number()
        shape = self.of(name).shape
        same = self.tensors(lambda t: t.shape == shape)
        fits = self.tensors(
            lambda t: (
                t.dim() <= len(shape)
                and all(
                    a in (1, b)
                    for a, b in zip(reversed(t.shape), reversed(shape), strict=False)
                )
            )
        )
        return self.rng.choice(same if self.rng.random() < 0.6 and same else fits)

    # Kinds of lines

    def line(self) -> str:
        kinds = [
            (10, self.elementwise),
            (5, self.reduction),
            (8, self.view),
            (3, self.several_views),
            (8, self.in_place),
            (4, self.in_place_no_grad),
            (3, self.assignment),
            (1, self.out),
            (6, self.reading),
            (8, self.backward),
            (4, self.grad),
            (3, self.grad_field),
            (3, self.hook),
            (2, self.toggle),
            (2, self.detaching),
            (2, self.numpy),
            (2, self.threads),
            (1, self.forget),
            (2, self.leaf),
            (1, self.data),
            (1, self.matrix),
            (1, self.casting),
            (2, self.custom),
            (2, self.saving),
            (4, self.selection),
            (3, self.scattering),
            (4, self.step),
        ]
        weights = [w for w, _ in kinds]
        while True:
            make = self.rng.choices([m for _, m in kinds], weights)[0]
            try:
                return make()
            except (LookupError, IndexError, RuntimeError):
                continue

    def leaf(self) -> str:
        shape = self.rng.choice(["3", "3", "2, 3", "2, 3", "2, 2, 3", ""])
        count = int(np.prod([int(s) for s in shape.split(",") if s.strip()] or [1]))
        start = self.rng.choice([-1.0, 0.5, 1.0])
        grad = ", requires_grad=True" if self.rng.random() < 0.6 else ""
        values = [round(start + 0.25 * i, 3) for i in range(count)]
        text = f"torch.tensor({values}).reshape({shape or '()'})"
        if grad:
            text = f"{text}.clone().requires_grad_()"
            if self.rng.random() < 0.3:
                text = f"torch.nn.Parameter({text[:-17]})"
        return f"{self.fresh()} = {text}"

    def elementwise(self) -> str:
        a = self.pick()
        kind = self.rng.random()
        if kind < 0.6:
            op = self.rng.choice(["+", "-", "*", "*", "/"])
            b = self.other(a)
            if self.rng.random() < 0.2:
                a, b = b, a
            return f"{self.fresh()} = {a} {op} {b}"
        if kind < 0.9:
            op = self.rng.choice(
                ["tanh", "exp", "sin", "relu", "sigmoid", "abs", "neg", "square"]
            )
            return f"{self.fresh()} = {a}.{op}()"
        b = self.other(a)
        return self.rng.choice(
            [
                f"{self.fresh()} = {a} ** 2",
                f"{self.fresh()} = {a}.lerp({a}.clone(), 0.5)",
                f"{self.fresh()} = {a}.clamp(min=-0.4, max=0.9)",
                f"{self.fresh()} = {a}.clone()",
                f"{self.fresh()} = torch.stack([{a}, {a}])[k % 2]",
                f"{self.fresh()} = {a}.add({b}, alpha=(k + 1))",
            ]
        )

    def reduction(self) -> str:
        a = self.pick()
        op = self.rng.choice(["sum", "mean", "sum", "prod", "logsumexp"])
        dims = self.of(a).dim()
        if dims and (self.rng.random() < 0.4 or op == "logsumexp"):
            return f"{self.fresh()} = {a}.{op}({self.rng.randrange(dims)})"
        if op == "logsumexp" or not dims:
            op = "sum"
        return f"{self.fresh()} = {a}.{op}()"

    def view_of(self, a: str) -> str:
        """A view of a tensor, as an expression."""
        t = self.of(a)
        dims, shape = t.dim(), list(t.shape)
        found = [f"{a}.detach()", f"{a}.view_as({a})", f"{a}[...]", f"{a}[None]"]
        if dims:
            d = self.rng.randrange(dims)
            n = shape[d]
            i = self.rng.choice([f"k % {n}", "0", str(n - 1), "-1"])
            found += [
                f"{a}[{', '.join([':'] * d + [i])}]",
                f"{a}[{', '.join([':'] * d + ['k % 2:'])}]",
                f"{a}[{', '.join([':'] * d + ['::2'])}]",
                f"{a}.select({d}, {i})",
                f"{a}.narrow({d}, {'k % 2' if n > 1 else 0}, 1)",
                f"{a}.unsqueeze({d})",
                f"{a}.reshape(-1)",
                f"{a}.view(-1)",
                f"{a}.flatten()",
            ]
        if dims >= 2:
            found += [
                f"{a}.transpose(0, 1)",
                f"{a}.mT",
                f"{a}.diagonal()",
                f"{a}.permute({', '.join(map(str, reversed(range(dims))))})",
                f"{a}.diagonal(0, 0, 1)",
            ]
        found += [f"{a}.expand(2, {', '.join(map(str, shape))})".replace(", )", ")")]
        return self.rng.choice(found)

    def view(self) -> str:
        a = self.pick()
        text = self.view_of(a)
        if self.rng.random() < 0.15 and not self.of(a).requires_grad:
            return f"with torch.no_grad(): {self.fresh()} = {text}"
        return f"{self.fresh()} = {text}"

    def several_views(self) -> str:
        a = self.pick(lambda t: t.dim() >= 1 and t.shape[0] in (2, 3))
        n, b, c = self.of(a).shape[0], self.fresh(), self.fresh()
        how = self.rng.choice(["unbind()", "split(1)", "chunk(2)", "split([1, -1])"])
        if how == "split([1, -1])":
            how = f"split([1, {n - 1}])"
        if how in ("chunk(2)",) or n == 2 or how.startswith("split(["):
            return f"{b}, {c} = {a}.{how}"
        return f"{b}, {c}, *_ = {a}.{how}"

    def in_place(self) -> str:
        a = self.pick()
        if self.rng.random() < 0.3:
            a = self.view_of(a)
            base = a.split(".")[0].split("[")[0]
        else:
            base = a
        b = self.other(base) if base == a else self.number()
        made = self.rng.choice(
            [
                f"{a}.add_({b})",
                f"{a}.mul_({b})",
                f"{a}.sub_({b})",
                f"{a}.add_({b}, alpha=0.5)",
                f"{a}.zero_()",
                f"{a}.sub_({self.number()})",
                f"{a}.tanh_()",
                f"{a}.copy_({b})" if b in self.scope else f"{a}.neg_()",
                f"{a}.clamp_(min=-0.4)",
                f"{a}.relu_()",
                f"{a}.exp_()",
            ]
        )
        if base == a and self.rng.random() < 0.3:
            op = self.rng.choice(["+=", "*=", "-="])
            return f"{a} {op} {b}"
        if base == a and self.rng.random() < 0.15:
            return f"{self.fresh()} = {made}"
        return made

    def in_place_no_grad(self) -> str:
        if self.rng.random() < 0.4:
            a = self.pick(lambda t: t.grad is not None)
            return self.rng.choice(
                [
                    f"with torch.no_grad(): {a}.sub_({a}.grad, alpha=0.1)",
                    f"with torch.no_grad(): {a} -= 0.1 * {a}.grad",
                    f"with torch.no_grad(): {a}.add_({a}.grad * -(0.1 + k))",
                ]
            )
        line = self.in_place()
        if "=" in line.split("(")[0]:
            return line
        return f"with torch.no_grad(): {line}"

    def assignment(self) -> str:
        a = self.pick(lambda t: t.dim() >= 1)
        n = self.of(a).shape[0]
        b = self.number()
        # (What a write has written already would be read by its own loop.)
        rows = self.tensors(
            lambda t: t.shape == self.of(a).shape[1:] and not t._is_view()
        )
        if rows and self.rng.random() < 0.6:
            b = self.rng.choice(rows)
        index = self.rng.choice(
            [f"k % {n}", "0", "-1", ":", "...", "k % 2:", "::2", "0:1"]
        )
        line = self.rng.choice(
            [
                f"{a}[{index}] = {b}",
                f"{a}[{index}] = {b}",
                f"{a}[{index}] += {b}",
                f"{a}[{index}] *= {b}",
                f"{a}[{a} > 0.6] = {self.number()}",
                f"{a}[torch.tensor([0, {n - 1}])] = {b}",
                f"{a}.masked_fill_({a} > 0.6, {self.number()})",
            ]
        )
        if self.rng.random() < 0.3:
            return f"with torch.no_grad(): {line}"
        return line

    def out(self) -> str:
        a = self.pick()
        o = self.pick(lambda t: t.shape == self.of(a).shape)
        b = self.other(a)
        op = self.rng.choice(["add", "mul"])
        line = f"torch.{op}({a}, {b}, out={o})"
        if self.rng.random() < 0.5:
            return f"with torch.no_grad(): {line}"
        return line

    def reading(self) -> str:
        a = self.pick()
        return self.rng.choice(
            [
                f"read({a}.tolist())",
                f"read({a}.sum().item())",
                f"read(float({a}.detach().reshape(-1)[0]))",
                f"read({a}.detach().numpy().copy())",
                f"read(bool(({a} > 0).all()))",
                f"read({a}.grad.tolist())"
                if self.of(a).grad is not None
                else f"read({a}.tolist())",
                f"read({a}._version)",
                f"read(type({a}.grad_fn).__name__)",
            ]
        )

    def root(self) -> str:
        a = self.pick(lambda t: t.requires_grad)
        t = self.of(a)
        if t.dim() == 0 and self.rng.random() < 0.7:
            return a
        return self.rng.choice(
            [f"{a}.sum()", f"({a} * {a}).sum()", f"({a} * {self.number()}).mean()"]
        )

    def backward(self) -> str:
        root = self.root()
        options: list[str] = []
        if self.rng.random() < 0.4:
            options.append("retain_graph=True")
        if self.rng.random() < 0.1:
            options.append("create_graph=True")
        if self.rng.random() < 0.15:
            options.append(
                f"inputs=[{self.pick(lambda t: t.requires_grad and t.is_leaf)}]"
            )
        if self.rng.random() < 0.1:
            a = self.pick(lambda t: t.requires_grad)
            given = self.pick(lambda t: t.shape == self.of(a).shape)
            given = f"{given}.detach().clone()"
            return f"{a}.backward({', '.join([given, *options])})"
        return f"{root}.backward({', '.join(options)})"

    def grad(self) -> str:
        root = self.root()
        n = self.rng.choice([1, 1, 2])
        inputs = list({self.pick(lambda t: t.requires_grad) for _ in range(n)})
        n = len(inputs)
        options = ["allow_unused=True"]
        if self.rng.random() < 0.5:
            options.append("create_graph=True")
        elif self.rng.random() < 0.3:
            options.append("retain_graph=True")
        names = [self.fresh() for _ in range(n)]
        return (
            f"{', '.join(names)}, = torch.autograd.grad({root}, "
            f"[{', '.join(inputs)}], {', '.join(options)})"
        )

    def grad_field(self) -> str:
        a = self.pick(lambda t: t.grad is not None)
        g = self.fresh()
        return self.rng.choice(
            [
                f"{a}.grad = None",
                f"{a}.grad.zero_()",
                f"{a}.grad.mul_(0.5)",
                f"{g} = {a}.grad",
                f"{g} = {a}.grad[...]",
                f"{a}.grad = {a}.grad.clone()",
                f"{a}.grad = torch.ones_like({a})",
                f"{g} = {a} - {a}.grad",
            ]
        )

    def hook(self) -> str:
        return hook_line(self)

    def toggle(self) -> str:
        a = self.pick()
        return self.rng.choice(
            [
                f"{a}.requires_grad_(False)",
                f"{a}.requires_grad_()",
                f"{a}.requires_grad_({self.rng.random() < 0.5})",
            ]
        )

    def custom(self) -> str:
        a, b = self.pick(), self.pick()
        if self.rng.random() < 0.6:
            return f"{self.fresh()} = Cube.apply({a})"
        if self.of(a).shape == self.of(b).shape and self.rng.random() < 0.6:
            return f"{self.fresh()} = Sum.apply({a}, {b})"
        return f"{self.fresh()}, {self.fresh()} = Halves.apply({a}, {b})"

    def saving(self) -> str:
        return saving_line(self)

    def selection(self) -> str:
        """Elements chosen from tensors, and tensors put together."""
        a = self.pick()
        t, n = self.of(a), self.number()
        b = self.rng.choice(self.tensors(lambda o: o.shape == t.shape))
        found = [
            f"torch.where({a} > 0.6, {a}, {self.other(a)})",
            f"torch.where({a} > {b}, {n}, {b})",
            f"torch.maximum({a}, {b})",
            f"{a}.masked_fill({a} > 0.6, {n})",
            f"torch.stack([{a}, {b}]).sum(0)",
            f"{a}.max()",
        ]
        if t.dim():
            d, last = self.rng.randrange(t.dim()), t.shape[0] - 1
            found += [
                f"torch.cat([{a}, {b}], {d})",
                f"torch.cat([{a}, {b}])[:{last + 1}]",
                f"{a}[torch.tensor([{last}, 0])]",
                f"{a}[{a} > 0.6].sum()",
                f"{a}.index_select(0, torch.tensor([0, {last}, 0]))",
                f"{a}.gather({d}, torch.zeros_like({a}, dtype=torch.long))",
                f"{a}.cumsum({d})",
                f"{a}.amax({d})",
                f"{a}.softmax({d})",
                f"{a}.flip({d})",
            ]
        return f"{self.fresh()} = {self.rng.choice(found)}"

    def scattering(self) -> str:
        """Writes to chosen elements, and writes of several operands."""
        a = self.pick()
        t, n = self.of(a), self.number()
        b = self.rng.choice(self.tensors(lambda o: o.shape == t.shape))
        found = [
            f"{a}.addcmul_({b}, {b}, value=0.5)",
            f"{a}.lerp_({b}, 0.5)",
            f"{a}.mul_({n}).add_({b})",
            f"{a}.add_({n}).view(-1).mul_(2)",
            f"{a}.fill_({n})",
            f"{a}.copy_({b}.clone())",
            f"{a}.masked_fill_({b} > 0.6, {n})",
            f"{a}.expand_as({a}).mul_({n})",
            f"{self.fresh()} = {a}.clone().mul_({b})",
        ]
        if t.dim():
            last = t.shape[0] - 1
            index = f"torch.tensor([{last}, 0])" if last else "torch.tensor([0])"
            long = f"torch.zeros_like({a}, dtype=torch.long)"
            found += [
                f"{a}.scatter_add_(0, {long}, {b}.clone())",
                f"{a}.scatter_(0, {long}, {n})",
                f"{a}.index_add_(0, {index}, {b}[:2].clone())",
                f"{a}.index_fill_(0, {index}, {n})",
                f"{a}.index_copy_(0, {index}, {b}[:2].clone())",
                f"{a}[{index}] += {n}",
                f"{a}[{b} > 0.6] *= {n}",
                f"{a}[torch.zeros({last + 1}, dtype=torch.bool)] = {n}",
            ]
        line = self.rng.choice(found)
        if self.rng.random() < 0.3:
            return f"with torch.no_grad(): {line}"
        return line

    def step(self) -> str:
        """What training does with parameters and gradients."""
        a = self.pick(lambda t: t.requires_grad and t.is_leaf)
        b = self.pick(lambda t: t.requires_grad and t.is_leaf)
        both = ", ".join(dict.fromkeys([a, b]))
        root, rate = self.root(), self.rng.choice(["0.1", "0.5", "0.1 * (k + 1)"])
        momentum = self.rng.choice(["", ", momentum=0.9", ", weight_decay=0.1"])
        found = [
            f"o = torch.optim.SGD(distinct({both}), lr={rate}{momentum})",
            f"torch.autograd.backward([{root}, {self.root()}], inputs=[{both}])",
            f"({root} + {self.root()}).backward()",
            f"{self.fresh()}, = torch.autograd.grad([{root}, {self.root()}], [{a}])",
        ]
        if "o" in self.scope:
            found += 2 * [
                "o.step()",
                "o.zero_grad()",
                "o.zero_grad(set_to_none=False)",
                f"o.zero_grad(); {root}.backward(); o.step()",
            ]
        if self.of(a).grad is not None:
            found += [
                f"{a}.data.add_({a}.grad, alpha=-{rate})",
                f"{a}.data -= {rate} * {a}.grad",
                f"{a}.data = {a}.data - {rate} * {a}.grad",
                f"{a}.grad.data.zero_()",
                f"{a}.grad.detach_().zero_()",
                f"{a}.grad = {a}.grad * 0.5",
                f"torch.nn.utils.clip_grad_norm_([{both}], 0.5)",
            ]
        return self.rng.choice(found)

    def detaching(self) -> str:
        a = self.pick()
        return self.rng.choice(
            [
                f"{a}.detach_()",
                f"{self.fresh()} = {a}.detach()",
                f"{self.fresh()} = {a}.data",
                f"{self.fresh()} = {a}.detach().clone().requires_grad_()",
            ]
        )

    def data(self) -> str:
        a = self.pick()
        b = self.pick(lambda t: t.shape == self.of(a).shape)
        return self.rng.choice(
            [
                f"{a}.data.mul_(0.5)",
                f"{a}.data.copy_({b})",
                f"{a}.data = {b}.detach().clone()",
                f"{a}.data.zero_()",
            ]
        )

    def numpy(self) -> str:
        arrays = [n for n, v in self.scope.items() if isinstance(v, np.ndarray)]
        a = self.pick()
        found = [f"n{self.rng.randrange(2)} = {a}.detach().numpy()"]
        for n in arrays:
            found += [
                f"{n}[...] = {n} * 0.5",
                f"{n}[...] = k + 0.25",
                f"{self.fresh()} = torch.from_numpy({n})",
                f"{self.fresh()} = torch.from_numpy({n}).clone().requires_grad_()",
                f"read({n})",
            ]
        return self.rng.choice(found)

    def threads(self) -> str:
        a = self.pick()
        inner = self.rng.choice(
            [self.elementwise, self.reduction, self.view, self.backward, self.in_place]
        )()
        if " = " in inner:
            name, expression = inner.split(" = ", 1)
            if name.isidentifier() and not inner.startswith("with"):
                return f"{name} = thread(lambda: {expression})"
            raise LookupError
        if inner.startswith("with") or re.search(r"[-+*]=", inner):
            return f"read(thread(lambda: {a}.tolist()))"
        return f"thread(lambda: {inner})"

    def forget(self) -> str:
        if len(self.tensors()) < 4:
            raise LookupError
        return f"del {self.pick()}"

    def matrix(self) -> str:
        a = self.pick(lambda t: t.dim() == 2)
        n = self.of(a).shape[1]
        b = self.pick(lambda t: t.dim() <= 2 and t.dim() > 0 and t.shape[0] == n)
        return f"{self.fresh()} = {a} @ {b}"

    def casting(self) -> str:
        a = self.pick()
        return self.rng.choice(
            [f"{self.fresh()} = {a}.double()", f"{self.fresh()} = {a}.float()"]
        )

    # The whole

    def make(self) -> Lines:
        for _ in range(self.rng.choice([1, 2, 2, 3])):
            self.emit(self.leaf())
        for _ in range(self.rng.randrange(1, 8)):
            self.emit(self.line())
        if self.rng.random() < 0.5:
            hooked = self.rng.random() < 0.2
            if hooked:
                self.emit("enter('same')")
            start = len(self.lines)
            for _ in range(self.rng.randrange(2, 7)):
                self.emit(self.line())
            body = self.lines[start:]
            for k in range(1, LOOPS + 1):
                self.emit(f"k = {k}")
                for line in body:
                    self.emit(line)
            if hooked:
                self.emit("leave()")
        for _ in range(self.rng.randrange(1, 5)):
            self.emit(self.line())
        return self.lines
