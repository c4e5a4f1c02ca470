"""Averages of the parameters of all processes: not supported."""

from torchshim._errors import unsupported

__all__ = ["ModelAverager", "PeriodicModelAverager"]

_PLACE = "distributed.algorithms.model_averaging.averagers"
_REASON = "local SGD is not implemented"
ModelAverager = unsupported(f"{_PLACE}.ModelAverager", _REASON)
PeriodicModelAverager = unsupported(f"{_PLACE}.PeriodicModelAverager", _REASON)
