"""The older name of `torch.ao.quantization.quant_type`."""

import importlib as _importlib

_module = _importlib.import_module("torchshim.ao.quantization.quant_type")
globals().update({n: v for n, v in vars(_module).items() if not n.startswith("__")})
