"""Lines of random programs that register hooks; some of these write to tensors."""

from __future__ import annotations

from typing import Any


def hook_line(maker: Any) -> str:
    a = maker.pick(lambda t: t.requires_grad)
    if maker.rng.random() < 0.4:
        return writing(maker, a)
    return maker.rng.choice(
        [
            f"h = hook({a}, double)",
            f"h = hook({a}, peek)",
            f"h = hook({a}, kept.append)",
            "read(kept)",
            f"h = hook({a}, bump)",
            f"h = hook({a}, boom)",
            "h.remove()",
            f"{a}.retain_grad()",
            f"h = {a}.grad_fn.register_hook(lambda i, o: None)",
            f"h = {a}.register_post_accumulate_grad_hook(lambda p: read(p.grad))",
        ]
    )


def writing(maker: Any, a: str) -> str:
    """A hook that changes something while the backward runs.

    None changes the gradient that it is given: with whom PyTorch's engine shares that
    is its own affair.
    """
    b = maker.pick()
    what = maker.rng.choice(
        [
            f"{b}.data.mul_(0.5)",
            f"torch.no_grad()({b}.add_)(0.25)",
            f"torch.no_grad()({b}[:1].zero_)()",
            f"{b}.mul_(2)",
            f"{b}.detach().zero_()",
            f"{b}.detach_()",
            f"{b}.requires_grad_()",
            f"setattr({b}, 'grad', None)",
            f"{b}.sum().item()",
        ]
    )
    does = f"({what}, None)[1]"
    return maker.rng.choice(
        [
            f"h = hook({a}, lambda g: {does})",
            f"h = hook({a}, lambda g: {does})",
            f"h = {a}.register_post_accumulate_grad_hook(lambda p: {does})",
            f"h = {a}.grad_fn.register_hook(lambda i, o: {does})",
            f"h = {a}.grad_fn.register_prehook(lambda o: {does})",
        ]
    )


def saving_line(maker: Any) -> str:
    """What is kept for backward goes through hooks, or is computed again."""
    a, rng = maker.pick(), maker.rng
    if rng.random() < 0.4:
        function = rng.choice(["Cube.apply", "torch.tanh", "squared"])
        how = rng.choice(["", ", use_reentrant=True"])
        return f"{maker.fresh()} = computed_again({function}, {a}{how})"
    kinds = [maker.elementwise, maker.reduction, maker.custom, maker.in_place]
    inner = rng.choice(kinds)()
    if inner.startswith("with"):
        raise LookupError
    return f"with saved('{rng.choice(['same', 'copied', 'read'])}'): {inner}"
