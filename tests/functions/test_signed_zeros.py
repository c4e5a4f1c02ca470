"""Zeros that keep their sign, and other values at the limits of activations."""

from __future__ import annotations

from tests.oracle import case

VALUES = [-0.0, 0.0, -1.0, 2.0, float("nan"), float("inf"), -float("inf")]
FUNCTIONS = {
    "relu": lambda torch, x: torch.relu(x),
    "relu_": lambda torch, x: x.clone().relu_(),
    "relu6": lambda torch, x: torch.nn.functional.relu6(x),
    "clamp": lambda torch, x: x.clamp(min=0),
    "clamp_min": lambda torch, x: x.clamp_min(0),
    "clamp both": lambda torch, x: x.clamp(0, 1),
    "clamp max": lambda torch, x: x.clamp(max=0),
    "clamp max -0": lambda torch, x: x.clamp(max=-0.0),
    "hardtanh": lambda torch, x: torch.nn.functional.hardtanh(x, 0, 1),
    "hardtanh to 0": lambda torch, x: torch.nn.functional.hardtanh(x, -1, 0.0),
    "logsigmoid": lambda torch, x: torch.nn.functional.logsigmoid(x),
    "leaky_relu": lambda torch, x: torch.nn.functional.leaky_relu(x),
    "elu": lambda torch, x: torch.nn.functional.elu(x),
    "threshold": lambda torch, x: torch.nn.functional.threshold(x, 0, 0),
    "hardswish": lambda torch, x: torch.nn.functional.hardswish(x),
    "hardshrink": lambda torch, x: torch.nn.functional.hardshrink(x),
}


@case.over(*FUNCTIONS)
def signs(torch, name):
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        x = torch.tensor(VALUES, dtype=dtype)
        found = FUNCTIONS[name](torch, x)
        yield found, found.signbit() & ~found.isnan()
    leaf = torch.tensor(VALUES[:5], requires_grad=True)
    FUNCTIONS[name](torch, leaf).sum().backward()
    yield leaf.grad
