"""The named tuples that functions give: `torch.return_types.max` and its like."""

from __future__ import annotations

from typing import Any

from torchshim._core.op import REGISTRY
from torchshim._functions import decompositions as _decompositions
from torchshim._functions import linalg as _linalg
from torchshim._functions.fake_quantization import Helper as _Helper
from torchshim._functions.histogram import Histogramdd as _Histogramdd
from torchshim._functions.native_attention import Flash as _Flash
from torchshim._structseq import result_type


def _kinds() -> dict[str, Any]:
    ops = [op for op in REGISTRY.values() if op.named_result]
    kinds = [result_type(op) for op in ops]
    kinds += [result_type(op, "_out") for op in ops if op.out]
    parts = _decompositions
    own = [kind for kind in kinds if kind.__name__ in ("qr", "triangular_solve")]
    kinds += [parts.written_kind(kind) for kind in own]
    for kind in (parts.Svd, parts.Lu, parts.Unpacked):
        kinds += [kind, parts.written_kind(kind)]
    kinds += [_linalg.Lstsq, _linalg.LstsqOut, _Histogramdd]
    kinds += [_Helper, _Flash, parts.Infos]
    return {kind.__name__: kind for kind in kinds}


globals().update(_kinds())
all_return_types = [*_kinds().values()]
# The registry has the names.
__all__ = [*_kinds()]  # pyright: ignore[reportUnsupportedDunderAll]
