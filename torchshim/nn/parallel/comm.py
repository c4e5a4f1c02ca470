"""Tensors moved between GPUs, under the name of PyTorch's module."""

from torchshim.cuda import comm as _comm

broadcast: type = _comm.broadcast  # pyright: ignore[reportAttributeAccessIssue]
globals().update({k: v for k, v in vars(_comm).items() if isinstance(v, type)})
