"""Of ONNX's opset 9, how it orders paddings: programs cannot be exported."""

from __future__ import annotations

from collections.abc import Sequence


def _prepare_onnx_paddings(dim: int, pad: Sequence[int]) -> list[int]:
    """The margins before all dimensions, then those behind them.

    In `pad` they are in pairs, the last dimension first; where it has none they are 0.

    >>> _prepare_onnx_paddings(3, [1, 2, 3, 4])
    [0, 3, 1, 0, 4, 2]
    """
    whole = [*pad, *(0,) * (2 * dim - len(pad))]
    return [*whole[-2::-2], *whole[::-2]]
