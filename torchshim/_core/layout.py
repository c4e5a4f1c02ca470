"""Memory formats and layouts: ``torch.channels_last``, ``torch.strided`` and the like.

Arrays are held in logical order; a memory format decides the strides that a tensor
reports. See https://docs.pytorch.org/docs/2.13/tensor_attributes.html#torch-layout.
"""

from __future__ import annotations

from typing import Any

from torchshim._core.dtypes import Builtin, read_only
from torchshim._core.meta import contiguous_strides, fills, is_contiguous


class _Constant:
    """What layouts and memory formats have in common: named, one object each."""

    __slots__ = ("name",)
    name: str

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class layout(_Constant, metaclass=Builtin):
    """How a tensor's elements are stored: `strided`, or a kind of sparse tensor.

    >>> strided
    torch.strided
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> layout:
        raise TypeError("cannot create 'torch.layout' instances")

    __setattr__ = read_only


#: How errors write layouts.
LAYOUT_TEXTS = {
    "strided": "Strided",
    "sparse_coo": "Sparse",
    "sparse_csr": "SparseCsr",
    "sparse_csc": "SparseCsc",
    "sparse_bsr": "SparseBsr",
    "sparse_bsc": "SparseBsc",
    "_mkldnn": "Mkldnn",
    "jagged": "Jagged",
}


class memory_format(_Constant, metaclass=Builtin):
    """The order in which a tensor's elements lie in memory.

    >>> channels_last
    torch.channels_last
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> memory_format:
        raise TypeError("cannot create 'torch.memory_format' instances")

    __setattr__ = read_only


def _make(kind: Any, name: str) -> Any:
    made = object.__new__(kind)
    object.__setattr__(made, "name", name)
    return made


NAMES: dict[str, Any] = {
    name: _make(kind, name)
    for kind, names in (
        (
            layout,
            "strided sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc jagged "
            "_mkldnn",
        ),
        (
            memory_format,
            "contiguous_format preserve_format channels_last channels_last_3d",
        ),
    )
    for name in names.split()
}
NAMES["legacy_contiguous_format"] = NAMES["contiguous_format"]

strided: layout = NAMES["strided"]
contiguous_format: memory_format = NAMES["contiguous_format"]
preserve_format: memory_format = NAMES["preserve_format"]
channels_last: memory_format = NAMES["channels_last"]
channels_last_3d: memory_format = NAMES["channels_last_3d"]

#: How errors write memory formats.
FORMAT_TEXTS = {
    contiguous_format: "Contiguous",
    preserve_format: "Preserve",
    channels_last: "ChannelsLast",
    channels_last_3d: "ChannelsLast3d",
}
_RANKS = {channels_last: 4, channels_last_3d: 5}


def format_strides(shape: tuple[int, ...], wanted: memory_format) -> tuple[int, ...]:
    """Strides of a tensor laid out in a memory format.

    Raises RuntimeError where the format is for another number of dimensions.

    >>> format_strides((2, 3, 4, 5), channels_last)
    (60, 1, 15, 3)
    """
    rank = _RANKS.get(wanted)
    if rank is None:
        return contiguous_strides(shape)
    if len(shape) != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {wanted.name} format")
    batch, channels, *space = shape
    inner = contiguous_strides((batch, *space, channels))
    return inner[0], 1, *inner[1:-1]


def has_format(
    shape: tuple[int, ...], strides: tuple[int, ...], wanted: memory_format
) -> bool:
    """Whether the elements lie in memory in this format.

    >>> has_format((2, 3, 4, 5), (60, 1, 15, 3), channels_last)
    True
    """
    rank = _RANKS.get(wanted)
    if rank is None:
        return is_contiguous(shape, strides)
    if len(shape) != rank:
        return False
    # Channels innermost; unlike rows, an empty tensor is not laid out in any order.
    batch, channels, *space = zip(strides, shape, strict=True)
    return fills((channels, *reversed(space), batch))


def is_dense(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether the elements fill their memory without gaps or overlaps, in any order.

    >>> is_dense((2, 3), (1, 2)), is_dense((2, 3), (6, 1))
    (True, False)
    """
    return fills(sorted(zip(strides, shape, strict=True)))
