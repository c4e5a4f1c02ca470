"""Control flow within traced functions: not supported, as nothing is traced."""

from torchshim._errors import unsupported

__all__ = ["cond", "map"]

cond = unsupported("cond", "Python's own `if` takes its place")
map = unsupported("map", "Python's own loops and `vmap` take its place")
