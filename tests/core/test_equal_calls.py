"""Calls that differ in their runtime scalars alone: each has a gradient of its own.

What the trie knows of an event must follow from the path to it. Two calls with equal
operands are told apart by what was recorded of them, not by what they compute.
"""

from __future__ import annotations

from itertools import product

from tests.oracle import case

CALLS = {
    "product": lambda x, a: x * float(a),
    "sum": lambda x, a: x.add(x, alpha=a),
    "power": lambda x, a: x**a,
    "quotient": lambda x, a: x / float(a),
    "limits": lambda x, a: x.clamp(max=a / 4),
    "piece": lambda x, a: x[a % 3] * x.new_ones(3),
    "chain": lambda x, a: (x * float(a)).sin(),
}
# Which of two calls the gradient comes to, and their numbers.
TURNS = [*product((0, 1), (2, 3, 4), (5, 6)), (0, 2, 3)]


def calls_of(torch, call, first, second):
    x = torch.tensor([0.5, 1.0, 1.5], requires_grad=True)
    return x, torch.tensor([1.0, 2.0, 3.0]), (call(x, first), call(x, second))


@case.over(CALLS)
def one_of_two(torch, call):
    for which, *numbers in TURNS:
        x, grad, results = calls_of(torch, call, *numbers)
        yield torch.autograd.grad(results[which], x, grad)[0].tolist()
        x, grad, results = calls_of(torch, call, *numbers)
        results[which].backward(grad)
        yield x.grad.tolist()


@case.over(CALLS)
def one_of_two_twice_differentiable(torch, call):
    for which, *numbers in TURNS:
        x, grad, results = calls_of(torch, call, *numbers)
        (made,) = torch.autograd.grad(results[which], x, grad, create_graph=True)
        yield made.tolist()
        if made.requires_grad:
            made.sum().backward()
            yield x.grad.tolist()


@case.over(CALLS)
def both_in_turn(torch, call):
    for which, *numbers in TURNS:
        x, grad, results = calls_of(torch, call, *numbers)
        for at in (which, 1 - which):
            (made,) = torch.autograd.grad(results[at], x, grad, retain_graph=True)
            grad = made.detach()
        yield made.tolist()


@case.over(CALLS)
def after_a_read(torch, call):
    """The calls are in a closed recording."""
    for which, *numbers in TURNS:
        x, grad, results = calls_of(torch, call, *numbers)
        yield results[0].tolist()
        yield torch.autograd.grad(results[which], x, grad)[0].tolist()


@case.over(CALLS)
def with_a_hook(torch, call):
    for which, *numbers in TURNS:
        x, grad, results = calls_of(torch, call, *numbers)
        results[which].register_hook(lambda g: g * 2)
        yield torch.autograd.grad(results[which], x, grad)[0].tolist()


@case(warnings=False).over(CALLS)  # PyTorch imports what is deprecated
def under_transforms(torch, call):
    for which, *numbers in TURNS:

        def function(x, which=which, numbers=numbers):
            return (call(x, numbers[0]), call(x, numbers[1]))[which]

        x = torch.tensor([0.5, 1.0, 1.5])
        _, pull = torch.func.vjp(function, x)
        yield pull(torch.tensor([1.0, 2.0, 3.0]))[0].tolist()
        made = torch.func.jvp(function, (x,), (torch.tensor([1.0, 2.0, 3.0]),))
        yield made[1].tolist()
        yield torch.func.vmap(torch.func.grad(lambda x, f=function: f(x).sum()))(
            torch.stack([x, x + 1])
        ).tolist()


@case.over(retain=[False, True], hooked=[False, True])
def sums_of_gradients_beside_other_sums(torch, retain, hooked):
    """What the walk adds up is on the line where the factor of a sum varies."""
    for k in range(1, 9):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        if hooked:
            x.register_hook(lambda g: g * 2)
        torch.add(x, x, alpha=k).backward(torch.ones(2), retain_graph=retain)
        yield x.grad.tolist()
        y = torch.ones(3) * (k + 0.5)
        yield ((((y * 3.5) * 4.5) * 5.5) * 6.5).sum().item()
