"""The operators of `_ops/special.py`, compared with PyTorch."""

import numpy as np
import pytest

import torchshim as torch
from tests.ops.driver import area

globals().update(area(__name__))

# Functions, and where they are asked for.
ROUNDED = {
    "lgamma": (torch.lgamma, 0.1, 120.0),
    "lgamma below 0": (torch.lgamma, -5.0, 0.0),
    "digamma": (torch.digamma, 0.1, 120.0),
    "trigamma": (lambda x: torch.polygamma(1, x), 0.6, 50.0),
    "erf": (torch.erf, -3.0, 3.0),
    "erfc": (torch.erfc, -3.0, 5.0),
    "erfinv": (torch.erfinv, -0.9, 0.9),
    "log_ndtr": (torch.special.log_ndtr, -10.0, 5.0),
}


@pytest.mark.skipif(
    torch.accelerator.is_available(), reason="only on the CPU, where PyTorch's are so"
)
@pytest.mark.parametrize("name", ROUNDED)
def test_float32_is_rounded_right(name: str) -> None:
    function, low, high = ROUNDED[name]
    x = np.random.default_rng(0).uniform(low, high, 1000).astype(np.float32)
    exact = function(torch.from_numpy(x).double()).numpy()
    found = function(torch.from_numpy(x)).numpy()
    last_place = np.spacing(np.abs(exact).astype(np.float32))
    assert np.max(np.abs(found - exact) / last_place) < 1.01
