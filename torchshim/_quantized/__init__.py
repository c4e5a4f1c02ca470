"""Quantized tensors, `torch.quantize_per_tensor` and what follows from it.

Loaded when a script first uses one. `tensor.py` has the class, `construct.py` how such
tensors are made and asked, `views.py`, `elements.py` and `windows.py` what can be done
with them, `rebuilding.py` how they come out of files. `packed.py` has the weights of
layers of integers, `operators.py` all that these call.
https://docs.pytorch.org/docs/2.13/quantization.html
"""

from torchshim._quantized import construct, elements, recurrent, views, windows

__all__ = ["construct", "elements", "recurrent", "views", "windows"]
