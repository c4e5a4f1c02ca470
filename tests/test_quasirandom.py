"""Sobol's sequences, bit for bit those of PyTorch."""

from __future__ import annotations

import hashlib
import importlib
from typing import Any

from tests.oracle import attempt, case


def engine(torch: Any, *args: Any, **kwargs: Any) -> Any:
    module = importlib.import_module(f"{torch.__name__}.quasirandom")
    return module.SobolEngine(*args, **kwargs)


@case(exact=True)
def points(torch):
    for dimension in (1, 2, 5, 33):
        sobol = engine(torch, dimension)
        yield repr(sobol), sobol.MAXDIM, sobol.MAXBIT, sobol.num_generated
        yield sobol.draw(), sobol.draw(0), sobol.draw(6), sobol.quasi.clone()
        yield sobol.draw(3, dtype=torch.float64), sobol.num_generated
        yield sobol.reset().draw(2), sobol.fast_forward(11).draw(2), sobol.quasi
        yield engine(torch, dimension).fast_forward(70_001).draw(2)
        yield engine(torch, dimension).draw(1, dtype=torch.float16)
    out = torch.zeros(0)
    yield engine(torch, 3).draw(4, out=out) is out, out


@case(exact=True)
def all_dimensions(torch):
    sobol = engine(torch, 21201)
    yield hashlib.sha256(sobol.sobolstate.numpy().tobytes()).hexdigest()
    sobol.fast_forward(1234)
    yield sobol.draw()[0, ::1000]


@case(exact=True)
def scrambled(torch):
    for options in ({"seed": 3}, {}, {"seed": 0}):
        sobol = engine(torch, 7, scramble=True, **options)
        yield repr(sobol), sobol.shift, sobol.sobolstate[3]
        yield sobol.draw_base2(3), sobol.draw_base2(3), sobol.reset().draw(1)
        yield sobol.fast_forward(5).draw(2), sobol.quasi
    yield torch.rand(2)


@case
def refusals(torch):
    for dimension in (0, -1, 21202):
        yield attempt(engine, torch, dimension)
    sobol = engine(torch, 2)
    yield attempt(sobol.draw, 0)
    yield attempt(sobol.draw, -3)
    yield attempt(sobol.draw, 3, dtype=torch.float16)
    yield attempt(sobol.draw, 3, dtype=torch.int64)
    sobol.draw(3)
    yield attempt(sobol.draw_base2, 2)
    yield attempt(sobol.draw, -3)
    yield sobol.num_generated
