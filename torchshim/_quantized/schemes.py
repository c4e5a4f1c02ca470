"""The names of the ways in which integers stand for other numbers."""

from __future__ import annotations


class qscheme:
    """How numbers of a quantized tensor stand for others: compared by identity."""

    __module__ = "torch"

    def __init__(self, name: str) -> None:
        self._name = name
        # Where pickles find it by its name.
        self.__module__ = __name__.partition(".")[0]

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


QSCHEMES = {
    name: qscheme(name)
    for name in (
        *("per_tensor_affine", "per_channel_affine", "per_tensor_symmetric"),
        *("per_channel_symmetric", "per_channel_affine_float_qparams"),
    )
}
