"""The version of torchshim, and of the PyTorch release whose behaviour it follows."""

__version__ = "0.1.0"

#: The PyTorch release that decides what every function does.
torch_release = "2.13.0"

#: What scripts see as `torch.__version__`: it compares like the PyTorch release
#: (a local version label sorts after it), and says whose it is.
torch_version = f"{torch_release}+torchshim.{__version__}"
