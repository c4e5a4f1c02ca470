"""The named tuples that functions give: `torch.return_types.max` and its like."""

from __future__ import annotations

from typing import Any

from torchshim._core.op import REGISTRY
from torchshim._functions.decompositions import _into, _Lu, _Svd, _Unpacked
from torchshim._functions.histogram import _Result as _Histogramdd
from torchshim._functions.linalg import _Lstsq, _LstsqOut
from torchshim._structseq import result_type


def _kinds() -> dict[str, Any]:
    ops = [op for op in REGISTRY.values() if op.named_result]
    kinds = [result_type(op) for op in ops]
    kinds += [result_type(op, "_out") for op in ops if op.out]
    kinds += [_Svd, _into(_Svd), _Lu, _into(_Lu), _Unpacked, _into(_Unpacked)]
    kinds += [_Lstsq, _LstsqOut, _Histogramdd]
    return {kind.__name__: kind for kind in kinds}


globals().update(_kinds())
# The registry has the names.
__all__ = [*_kinds()]  # pyright: ignore[reportUnsupportedDunderAll]
