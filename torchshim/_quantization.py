"""Quantized tensors: what `torch` has of them, loaded when it is first asked for."""

from __future__ import annotations

import torchshim
from torchshim._derived import namespace
from torchshim._quantized.packed import ScriptObject
from torchshim._quantized.schemes import QSCHEMES, qscheme

__all__ = ["ScriptObject", "qscheme"]

globals().update(QSCHEMES)
globals().update({name: namespace("torch")[name] for name in torchshim._QUANTIZED})
