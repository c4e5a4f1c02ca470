"""The older name of `torch.ao.quantization.quantize_fx`."""

from torchshim.ao.quantization import quantize_fx as _quantize_fx

globals().update({n: v for n, v in vars(_quantize_fx).items() if not n.startswith("_")})
