"""Dimensions that methods such as `unsqueeze_` are given: integers of any class."""

from __future__ import annotations

import numpy as np

from tests.oracle import attempt, case, evaluate

CALLS = """
x.unsqueeze_(T(0))
x.transpose_(T(0), T(1))
x.swapaxes_(T(0), 1)
x.swapdims_(0, T(2))
x.squeeze_((T(1),))
x.squeeze_(T(1))
x.squeeze_(T([0, 1]))
x.squeeze_(np.array(1))
x.squeeze_(np.int64(1))
x.squeeze_(True)
x.squeeze_((True,))
x.squeeze_(())
x.squeeze_([1, 0])
x.squeeze_(1, 0)
x.squeeze_(dim=(0, 1))
x.squeeze_('a')
x.squeeze_(None)
x.swapdims_(0, True)
x.unsqueeze_(True)
x.unsqueeze_(1.0)
x.unsqueeze_()
x.unsqueeze_(T(0.0))
x.unsqueeze_(T([0]))
x.unsqueeze_(T(True))
x.unsqueeze_(np.array([0]))
x.transpose_(np.array(0), np.int32(1))
x.transpose_(dim0=0, dim1=1)
x.unsqueeze_(7)
x.transpose_(0, 9)
"""


@case.lines(CALLS)
def dimensions(torch, line):
    x = torch.zeros(2, 1, 3)
    pending = torch.ones(2) * 2
    found = attempt(evaluate, torch, line, x=x, T=torch.tensor, np=np)
    yield found if isinstance(found, Exception) else tuple(found.shape)
    yield tuple(x.shape), pending, torch.ones(2).fill_(2.5)
