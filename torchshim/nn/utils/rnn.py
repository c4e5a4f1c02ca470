"""Packed and padded batches of sequences, as `torch.nn.utils.rnn`."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable as Iterable
from typing import Any, NamedTuple, Self, TypeVar

import torchshim
from torchshim._arguments import check_bool
from torchshim._functions.creation import placed
from torchshim._functions.nn_packing import (
    invert_permutation,
    pad_sequence,
    sorted_lengths,
)
from torchshim._tensor import Tensor
from torchshim.nn.modules._parse_to import parse_to

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]

_T = TypeVar("_T")
_R = TypeVar("_R")


class PackedSequence_(NamedTuple):
    """The fields of a `PackedSequence`."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


def bind(optional: _T | None, fn: Callable[[_T], _R]) -> _R | None:
    """What a function gives for a value; None for None."""
    return None if optional is None else fn(optional)


def _packed_sequence_init_args(
    data: Any,
    batch_sizes: Tensor | None = None,
    sorted_indices: Tensor | None = None,
    unsorted_indices: Tensor | None = None,
) -> tuple[Any, Any, Any, Any]:
    """The fields of a `PackedSequence` made of these; refuses sizes on a GPU."""
    if unsorted_indices is None:
        unsorted_indices = invert_permutation(sorted_indices)
    if batch_sizes is None:
        if not isinstance(data, (list, tuple)) or len(data) != 2:
            raise AssertionError("Expected data to be a list or tuple of length 2")
        data, batch_sizes = data
    elif batch_sizes.device.type != "cpu":
        raise ValueError(
            "batch_sizes should always be on CPU. Instances of PackedSequence "
            "should never be created manually. They should be instantiated by "
            "functions like pack_sequence and pack_padded_sequences in "
            "nn.utils.rnn. "
            "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
        )
    return data, batch_sizes, sorted_indices, unsorted_indices


class PackedSequence(PackedSequence_):
    """Sequences of several lengths, step after step, as recurrent layers take them.

    `data` holds the rows of the first step, then those of the second, and so on;
    `batch_sizes` (1-D int64, on the CPU) says how many sequences each step has. The
    sequences stand sorted by length: `sorted_indices` says from where each came,
    `unsorted_indices` where each is. Made by `pack_padded_sequence` and
    `pack_sequence`. Follows ``torch.nn.utils.rnn.PackedSequence``.
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        given = data, batch_sizes, sorted_indices, unsorted_indices
        return super().__new__(cls, *_packed_sequence_init_args(*given))

    def _with(self, data: Tensor, fn: Callable[[Tensor], Tensor]) -> Self:
        order, back = bind(self.sorted_indices, fn), bind(self.unsorted_indices, fn)
        return type(self)(data, self.batch_sizes, order, back)

    def pin_memory(self) -> Self:
        """The sequences in pinned memory."""
        return self._with(self.data.pin_memory(), lambda t: t.pin_memory())

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """With `data` in another dtype or on another device; else the object itself.

        Takes the arguments of `Tensor.to`. The indices follow `data` to its device.
        """
        parse_to(*args, **kwargs)  # which refuses `copy`
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        return self._with(data, lambda t: t.to(data.device))

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """The sequences on an accelerator; takes the arguments of `Tensor.to`."""
        return self._on("cuda", args, kwargs)

    def cpu(self, *args: Any, **kwargs: Any) -> Self:
        """The sequences on the CPU; takes the arguments of `Tensor.to`."""
        return self._on("cpu", args, kwargs)

    def _on(self, kind: str, args: Any, kwargs: dict[str, Any]) -> Self:
        like = torchshim.tensor((), dtype=self.data.dtype, device=self.data.device)
        if like.to(*args, **kwargs).device.type != kind:
            kwargs["device"] = kind
        return self.to(*args, **kwargs)

    def double(self) -> Self:
        """With `data` as float64."""
        return self.to(dtype=torchshim.float64)

    def float(self) -> Self:
        """With `data` as float32."""
        return self.to(dtype=torchshim.float32)

    def half(self) -> Self:
        """With `data` as float16."""
        return self.to(dtype=torchshim.float16)

    def long(self) -> Self:
        """With `data` as int64."""
        return self.to(dtype=torchshim.int64)

    def int(self) -> Self:
        """With `data` as int32."""
        return self.to(dtype=torchshim.int32)

    def short(self) -> Self:
        """With `data` as int16."""
        return self.to(dtype=torchshim.int16)

    def char(self) -> Self:
        """With `data` as int8."""
        return self.to(dtype=torchshim.int8)

    def byte(self) -> Self:
        """With `data` as uint8."""
        return self.to(dtype=torchshim.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether `data` is on an accelerator."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether `data` is in pinned memory."""
        return self.data.is_pinned()


def pack_padded_sequence(
    input: Tensor,
    lengths: Any,
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Packs padded sequences of shape (steps, sequences, *).

    With `enforce_sorted` they must stand sorted by length, the longest first; without,
    they are sorted. Errors are PyTorch's RuntimeErrors about lengths. Follows
    ``torch.nn.utils.rnn.pack_padded_sequence``.

    >>> import torchshim as torch
    >>> packed = pack_padded_sequence(torch.tensor([[1, 4], [2, 0]]), [2, 1])
    >>> packed.data, packed.batch_sizes
    (tensor([1, 4, 2]), tensor([2, 1]))
    """
    if isinstance(lengths, Tensor):
        lengths = lengths.to(dtype=torchshim.int64)
    else:
        lengths = torchshim.as_tensor(lengths, dtype=torchshim.int64, device="cpu")
    order = None
    if not enforce_sorted:
        lengths, sorting = sorted_lengths(lengths)
        order = placed(sorting, input.device)
        input = torchshim.index_select(input, 0 if batch_first else 1, order)
    check_bool("_pack_padded_sequence", "batch_first", batch_first, 3)
    data, sizes = torchshim._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, sizes, order)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The padded sequences of a packed batch in their first order, and their lengths.

    ValueError for a `total_length` below that of the longest. Follows
    ``torch.nn.utils.rnn.pad_packed_sequence``.

    >>> import torchshim as torch
    >>> packed = pack_sequence([torch.ones(1), torch.ones(2)], enforce_sorted=False)
    >>> pad_packed_sequence(packed, batch_first=True)
    (tensor([[1., 0.],
            [1., 1.]]), tensor([1, 2]))
    """
    length = sequence.batch_sizes.size(0)
    if total_length is not None:
        if total_length < length:
            raise ValueError(
                "Expected total_length to be at least the length of the longest "
                f"sequence in input, but got total_length={total_length} and max "
                f"sequence length being {length}"
            )
        length = total_length
    check_bool("_pad_packed_sequence", "batch_first", batch_first, 3)
    padded, lengths = torchshim._pad_packed_sequence(
        sequence.data, sequence.batch_sizes, batch_first, padding_value, length
    )
    order = sequence.unsorted_indices
    if order is None:
        return padded, lengths
    padded = torchshim.index_select(padded, 0 if batch_first else 1, order)
    return padded, lengths[order.cpu()]


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """Padded sequences one by one, each of its own length.

    Without `batch_first` the first two dimensions of the tensor are exchanged in
    place, as in PyTorch. Follows ``torch.nn.utils.rnn.unpad_sequence``.

    >>> import torchshim as torch
    >>> unpad_sequence(torch.ones(2, 2), torch.tensor([2, 1]), batch_first=True)
    [tensor([1., 1.]), tensor([1.])]
    """
    if not batch_first:
        padded_sequences.transpose_(0, 1)
    steps = torchshim.arange(padded_sequences.shape[1], device=lengths.device)
    pairs = zip(padded_sequences, lengths, strict=True)
    return [sequence[steps < length] for sequence, length in pairs]


def pack_sequence(
    sequences: list[Tensor], enforce_sorted: bool = True
) -> PackedSequence:
    """Packs sequences of several lengths. Follows ``nn.utils.rnn.pack_sequence``.

    >>> import torchshim as torch
    >>> pack_sequence([torch.tensor([1, 2]), torch.tensor([3])]).data
    tensor([1, 3, 2])
    """
    lengths = torchshim.as_tensor([each.size(0) for each in sequences])
    return pack_padded_sequence(
        pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted
    )


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed batch. Follows ``nn.utils.rnn.unpack_sequence``.

    >>> import torchshim as torch
    >>> unpack_sequence(pack_sequence([torch.ones(2), torch.ones(1)]))
    [tensor([1., 1.]), tensor([1.])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
