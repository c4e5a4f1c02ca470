"""Optimizers whose `foreach` is True: `torch.optim._multi_tensor`."""

from __future__ import annotations

import functools
from typing import Any

from torchshim import optim


def partialclass(cls: type, *args: Any, **kwargs: Any) -> Any:
    """A subclass to which these arguments are given in any case."""
    init = functools.partialmethod(cls.__init__, *args, **kwargs)
    return type("NewCls", (cls,), {"__init__": init})


Adam = partialclass(optim.Adam, foreach=True)
AdamW = partialclass(optim.AdamW, foreach=True)
NAdam = partialclass(optim.NAdam, foreach=True)
SGD = partialclass(optim.SGD, foreach=True)
RAdam = partialclass(optim.RAdam, foreach=True)
RMSprop = partialclass(optim.RMSprop, foreach=True)
Rprop = partialclass(optim.Rprop, foreach=True)
ASGD = partialclass(optim.ASGD, foreach=True)
Adamax = partialclass(optim.Adamax, foreach=True)
Adadelta = partialclass(optim.Adadelta, foreach=True)
Adagrad = partialclass(optim.Adagrad, foreach=True)
