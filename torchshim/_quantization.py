"""Quantized tensors: their schemes have names; there are no such tensors."""

from __future__ import annotations

import torchshim
from torchshim._errors import refused


class qscheme:
    """How numbers of a quantized tensor stand for others: compared by identity."""

    __module__ = "torch"

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


_REASON = "quantized tensors are not here; fake_quantize_per_tensor_affine is"

globals().update({name: qscheme(name) for name in torchshim._SCHEMES})
globals().update(refused("torchshim", " ".join(torchshim._QUANTIZED), _REASON))
