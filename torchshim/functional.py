"""The functions of `torch` that PyTorch writes in Python.

https://docs.pytorch.org/docs/2.13/torch.html
"""

from torchshim._derived import IN_PYTHON, namespace

_here = {name: f for name, f in namespace("torch").items() if name in IN_PYTHON}
globals().update(_here)

__all__ = sorted(_here)  # pyright: ignore[reportUnsupportedDunderAll]
