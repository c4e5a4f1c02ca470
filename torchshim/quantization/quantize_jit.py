"""The older name of `torch.ao.quantization.quantize_jit`."""

import importlib as _importlib

_module = _importlib.import_module("torchshim.ao.quantization.quantize_jit")
globals().update({n: v for n, v in vars(_module).items() if not n.startswith("__")})
