"""The version of torchshim, and of the PyTorch release whose behaviour it follows.

Under `import torch` the package is PyTorch to every script, so the attribute
`torchshim.__version__` is `torch_version`: scripts compare `torch.__version__` with
releases of PyTorch. The version of torchshim itself is what
`importlib.metadata.version("torchshim")` gives.
"""

#: torchshim's own version (read by the build).
__version__ = "0.1.0"

#: The PyTorch release that decides what every function does.
torch_release = "2.13.0"

#: `torch.__version__`: ordered as the PyTorch release (PEP 440 puts a local label
#: after the plain release), and saying whose it is.
torch_version = f"{torch_release}+torchshim.{__version__}"
