"""Ways for the members of a group to go on with unequal amounts of data."""

from torchshim.distributed.algorithms.join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
