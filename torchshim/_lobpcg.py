"""`lobpcg` by the name of PyTorch's module."""

from torchshim._functions.lobpcg import LOBPCG as LOBPCG
from torchshim._functions.lobpcg import lobpcg as lobpcg
