"""Modules that several tests of `nn.Module` use."""

from __future__ import annotations

from typing import Any


def scale_class(torch: Any) -> Any:
    """A small module: one parameter, two buffers, no layer of the library."""

    class Scale(torch.nn.Module):
        def __init__(self, n: int = 2) -> None:
            super().__init__()
            self.factor = torch.nn.Parameter(torch.full((n,), 2.0))
            self.register_buffer("calls", torch.tensor(0))
            self.register_buffer("scratch", torch.zeros(n), persistent=False)

        def forward(self, x: Any) -> Any:
            return x * self.factor

    return Scale


def tree(torch: Any) -> Any:
    """A module that holds one module twice and one parameter twice."""
    scale = scale_class(torch)
    root = torch.nn.Module()
    root.a = scale()
    root.b = root.a
    root.c = torch.nn.Module()
    root.c.inner = scale(3)
    root.c.tied = root.a.factor
    root.empty = None
    root.register_module("nothing", None)
    root.register_parameter("absent", None)
    root.register_buffer("no_buffer", None)
    return root


def names(pairs: Any) -> list[str]:
    return [name for name, _ in pairs]


def show_grads(name: str) -> Any:
    return lambda mod, *grads: print(name, *grads)
