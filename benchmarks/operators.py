"""Operators that scripts spend their time in, with their gradients, against PyTorch.

For orientation, and to find what XLA is slow at; it takes minutes (`--long`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._case import Case, torch_api
from ._measure import timed_on_best_threads


class Operands:
    """Makes tensors: with gradients of real numbers, without of integers."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch

    def real(self, *shape: int) -> Any:
        return self.torch.randn(*shape, requires_grad=True)

    def constant(self, *shape: int) -> Any:
        return self.torch.randn(*shape)

    def below(self, high: int, *shape: int) -> Any:
        return self.torch.randint(0, high, shape)


Program = Callable[..., Any]
OPERATORS: list[tuple[str, Program, Callable[[Operands], tuple[Any, ...]]]] = []


def case(name: str, operands: Callable[[Operands], tuple[Any, ...]]) -> Any:
    """A decorator: the function gets a library and the operands."""

    def add(program: Program) -> Program:
        OPERATORS.append((name, program, operands))
        return program

    return add


def functional(name: str, operands: Any, text: str, **how: Any) -> None:
    """A case that calls one function of `torch.nn.functional`."""

    def program(torch: Any, *given: Any) -> Any:
        return getattr(torch.nn.functional, name)(*given, **how)

    case(f"{name}, {text}", operands)(program)


def method(name: str, operands: Any, text: str, *how: Any, part: Any = None) -> None:
    """A case that calls one method of the first operand."""

    def program(torch: Any, first: Any, *rest: Any) -> Any:
        out = getattr(first, name)(*rest, *how)
        return out if part is None else out[part]

    case(f"{name}, {text}", operands)(program)


IMAGES = "16 x 64 x 56 x 56"
functional("max_pool2d", lambda o: (o.real(16, 64, 56, 56),), IMAGES, kernel_size=2)
functional("avg_pool2d", lambda o: (o.real(16, 64, 56, 56),), IMAGES, kernel_size=2)
functional(
    "adaptive_max_pool2d", lambda o: (o.real(16, 64, 56, 56),), IMAGES, output_size=4
)
functional(
    "interpolate",
    lambda o: (o.real(8, 32, 32, 32),),
    "bilinear, 8 x 32 x 32 x 32",
    scale_factor=2,
    mode="bilinear",
)
functional(
    "grid_sample",
    lambda o: (o.real(8, 16, 32, 32), o.real(8, 32, 32, 2)),
    "8 x 16 x 32 x 32",
    align_corners=False,
)
functional(
    "pad",
    lambda o: (o.real(16, 64, 56, 56),),
    f"reflecting, {IMAGES}",
    pad=(3, 3, 3, 3),
    mode="reflect",
)
functional(
    "conv1d",
    lambda o: (o.real(32, 64, 500), o.real(64, 64, 5)),
    "32 x 64 x 500",
    padding=2,
)
functional(
    "conv3d",
    lambda o: (o.real(2, 16, 16, 32, 32), o.real(32, 16, 3, 3, 3)),
    "2 x 16 x 16 x 32 x 32",
    padding=1,
)
functional(
    "conv_transpose2d",
    lambda o: (o.real(16, 64, 16, 16), o.real(64, 32, 4, 4)),
    "16 x 64 x 16 x 16",
    stride=2,
    padding=1,
)
functional(
    "batch_norm",
    lambda o: (o.real(16, 64, 56, 56), None, None, o.real(64), o.real(64)),
    IMAGES,
    training=True,
)
functional(
    "group_norm",
    lambda o: (o.real(16, 64, 56, 56), 8, o.real(64), o.real(64)),
    IMAGES,
)
ROWS = "64 x 128 x 512"
functional(
    "layer_norm",
    lambda o: (o.real(64, 128, 512), (512,), o.real(512), o.real(512)),
    ROWS,
)
functional("softmax", lambda o: (o.real(64, 128, 512),), ROWS, dim=-1)
functional("gelu", lambda o: (o.real(64, 128, 512),), ROWS)
functional("dropout", lambda o: (o.real(64, 128, 512),), ROWS)
functional(
    "linear",
    lambda o: (o.real(64, 128, 512), o.real(512, 512), o.real(512)),
    ROWS,
)
functional(
    "cross_entropy",
    lambda o: (o.real(256, 32000), o.below(32000, 256)),
    "256 x 32000",
)
functional(
    "embedding",
    lambda o: (o.below(30000, 64, 128), o.real(30000, 256)),
    "64 x 128 of 30000 x 256",
)
functional(
    "scaled_dot_product_attention",
    lambda o: tuple(o.real(4, 8, 256, 64) for _ in range(3)),
    "causal, 4 x 8 x 256 x 64",
    is_causal=True,
)
method(
    "matmul",
    lambda o: (o.real(64, 128, 64), o.real(64, 64, 128)),
    "64 x 128 x 64 x 128",
)
method("cumsum", lambda o: (o.real(256, 4096),), "256 x 4096", -1)
method("sort", lambda o: (o.real(256, 4096),), "256 x 4096", -1, part=0)
method("topk", lambda o: (o.real(256, 4096),), "256 x 4096", 10, part=0)
method("median", lambda o: (o.real(256, 4096),), "256 x 4096", -1, part=0)
method("var", lambda o: (o.real(4096, 1024),), "4096 x 1024", -1)
method("sin", lambda o: (o.real(1000, 1000),), "1000 x 1000")
method("gather", lambda o: (o.real(4096, 256), 1, o.below(256, 4096, 64)), "4096 x 256")
method(
    "index_add",
    lambda o: (o.real(1000, 128), 0, o.below(1000, 50000), o.real(50000, 128)),
    "50000 rows of 128 to 1000",
)
method(
    "scatter_add",
    lambda o: (o.real(1000, 128), 0, o.below(1000, 20000, 128), o.real(20000, 128)),
    "20000 x 128 to 1000",
)


@case("a mask, 1000 x 1000", lambda o: (o.real(1000, 1000), o.constant(1000, 1000) > 0))
def mask(torch: Any, x: Any, chosen: Any) -> Any:
    return x[chosen]


@case("LSTM, 32 x 50 x 128 to 256", lambda o: (o.real(32, 50, 128),))
def lstm(torch: Any, x: Any) -> Any:
    layer = kept(torch, "LSTM", 128, 256, batch_first=True)
    return layer(x)[0]


@case("a layer of a transformer, 16 x 64 x 256", lambda o: (o.real(16, 64, 256),))
def transformer(torch: Any, x: Any) -> Any:
    layer = kept(
        torch, "TransformerEncoderLayer", 256, 8, 1024, dropout=0.0, batch_first=True
    )
    return layer(x)


@case("spectra, 4 x 16000", lambda o: (o.real(4, 16000), o.constant(400)))
def spectra(torch: Any, x: Any, window: Any) -> Any:
    return torch.stft(x, 400, 160, window=window, return_complex=True).abs()


_layers: dict[str, Any] = {}


def kept(torch: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """A layer, made once."""
    if name not in _layers:
        _layers[name] = getattr(torch.nn, name)(*args, **kwargs)
    return _layers[name]


def program(torch: Any, number: int) -> Callable[[], float]:
    """One of `OPERATORS`, forward and backward, to a number."""
    _, function, operands = OPERATORS[number]
    torch.manual_seed(0)
    given = operands(Operands(torch))
    leaves = [x for x in given if getattr(x, "requires_grad", False)]

    def step() -> float:
        for leaf in leaves:
            leaf.grad = None
        function(torch, *given).square().sum().backward()
        return sum(leaf.grad.abs().sum() for leaf in leaves).item()

    return timed_on_best_threads(torch, step, scale=1e3)


CASES = [
    Case(
        name=name,
        unit="ms",
        engines=torch_api(program, number),
        rounds=1,
        long=True,
    )
    for number, (name, *_) in enumerate(OPERATORS)
]
