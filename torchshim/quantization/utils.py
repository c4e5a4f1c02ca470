"""The older name of `torch.ao.quantization.utils`."""

import importlib as _importlib

_module = _importlib.import_module("torchshim.ao.quantization.utils")
globals().update({n: v for n, v in vars(_module).items() if not n.startswith("__")})
