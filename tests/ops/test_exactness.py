"""Float32 results of small tensors are rounded right on the CPU, as PyTorch's are."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import torchshim as torch

# Functions, and where they are asked for.
UNARY = {
    "log10": (torch.log10, 1e-3, 100.0),
    "sinh": (torch.sinh, -4.0, 4.0),
    "cosh": (torch.cosh, -4.0, 4.0),
    "tan": (torch.tan, -5.0, 5.0),
    "asin": (torch.asin, -1.0, 1.0),
    "acos": (torch.acos, -1.0, 1.0),
    "asinh": (torch.asinh, -5.0, 5.0),
    "acosh": (torch.acosh, 1.0, 5.0),
    "atanh": (torch.atanh, -1.0, 1.0),
    "atan2": (lambda x: torch.atan2(x, x.flip(0)), -5.0, 5.0),
    "hypot": (lambda x: torch.hypot(x, x.flip(0)), -5.0, 5.0),
    "mish": (torch.nn.functional.mish, -8.0, 8.0),
    "logsigmoid": (torch.nn.functional.logsigmoid, -8.0, 8.0),
}


@pytest.mark.skipif(
    torch.accelerator.is_available(), reason="only on the CPU, where PyTorch's are so"
)
@pytest.mark.parametrize("name", UNARY)
def test_float32_is_rounded_right(name: str) -> None:
    function: Callable[[Any], Any]
    function, low, high = UNARY[name]
    x = np.random.default_rng(0).uniform(low, high, 1000).astype(np.float32)
    exact = function(torch.from_numpy(x).double()).numpy()
    found = function(torch.from_numpy(x)).numpy()
    last_place = np.spacing(np.abs(exact).astype(np.float32))
    assert np.max(np.abs(found - exact) / last_place) < 0.51
