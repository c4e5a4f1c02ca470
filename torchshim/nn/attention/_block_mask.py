"""Masks as functions, and as blocks: what `flex_attention` takes."""

from __future__ import annotations

import enum
import inspect
import itertools
import math
from collections.abc import Callable
from typing import Any, Self

import torchshim
from torchshim._functions._arguments import warn
from torchshim._tensor import Tensor
from torchshim.nn import functional as F

MaskMod = Callable[..., Tensor]
_DEFAULT_SPARSE_BLOCK_SIZE = 128
_BLOCKS = _DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask that hides nothing."""
    return torchshim.ones((), dtype=torchshim.bool, device=batch.device)


def sliced_mask_mod(*_: Tensor) -> Tensor:
    raise RuntimeError(
        "Cannot use mask_mod from a sliced BlockMask. When you slice a BlockMask using "
        "[], the mask_mod attribute is reset. You must set it from the original "
        "BlockMask's mask_mod.\n\nIncorrect usage:\n"
        "  base_mask = create_block_mask(my_mask_fn, ...)\n"
        "  sliced_mask = base_mask[:, :, block_idx]\n"
        "  sliced_mask.mask_mod = apply_offset(sliced_mask.mask_mod, offset)  # WRONG!"
        "\n\nCorrect usage:\n"
        "  base_mask = create_block_mask(my_mask_fn, ...)\n"
        "  sliced_mask = base_mask[:, :, block_idx]\n"
        "  sliced_mask.mask_mod = apply_offset(base_mask.mask_mod, offset)"
        "  # Use base_mask!"
    )


def _combined(masks: tuple[MaskMod, ...], name: str, start: bool) -> MaskMod:
    if not all(callable(mask) for mask in masks):
        raise RuntimeError(f"All inputs should be callable mask_mods: {masks}")

    def combined(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = torchshim.full((), start, dtype=torchshim.bool, device=b.device)
        join = torchshim.logical_and if start else torchshim.logical_or
        for mask in masks:
            result = join(result, mask(b, h, q_idx, kv_idx))
        return result

    combined.__name__ = combined.__qualname__ = name
    return combined


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask that allows what any of these allows."""
    return _combined(mask_mods, "or_mask", False)


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask that allows what all of these allow."""
    return _combined(mask_mods, "and_mask", True)


def _positional(fn: Any) -> int:
    if hasattr(fn, "__code__"):
        return fn.__code__.co_argcount - len(getattr(fn, "__defaults__", None) or ())
    parameters = inspect.signature(fn).parameters.values()
    return sum(p.default is inspect.Parameter.empty for p in parameters)


class _ModificationType(enum.Enum):
    """What a function changes: scores or which are seen."""

    SCORE_MOD = 1
    MASK_MOD = 2
    UNKNOWN = 3


def _get_mod_type(fn: Any) -> _ModificationType:
    """What a function is of: the four indices, or the score as well."""
    count = _positional(fn)
    if count not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {count}")
    return _ModificationType.MASK_MOD if count == 4 else _ModificationType.SCORE_MOD


def _vmap_for_bhqkv(
    fn: Callable[..., Any],
    prefix: tuple[int | None, ...],
    suffix: tuple[int | None, ...] = (),
    out_dims: int | list[int | None] = 0,
    group_dim: bool = False,
) -> Callable[..., Any]:
    """A function of numbers as one of tensors: mapped over batch, head, query and key.

    `prefix` and `suffix`: how what stands before and after the indices is mapped.
    `group_dim`: heads come in groups.
    """
    for mapped in (3, 2, 1, 1, 0) if group_dim else (3, 2, 1, 0):
        indices = tuple(0 if dim == mapped else None for dim in range(4))
        fn = torchshim.vmap(fn, (*prefix, *indices, *suffix), out_dims)
    return fn


def applied(
    fn: MaskMod, shape: tuple[int, ...], device: Any, *scores: Tensor
) -> Tensor:
    """What a function gives for each batch, head, query and key (of each score)."""
    indices = (torchshim.arange(size, device=device) for size in shape)
    return _vmap_for_bhqkv(fn, (0,) * len(scores))(*scores, *indices)


def create_mask(
    mod_fn: Callable[..., Tensor],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
) -> Tensor:
    """The bool mask of shape (B, H, Q_LEN, KV_LEN) that a function stands for.

    >>> create_mask(lambda b, h, q, kv: q >= kv, 1, 1, 2, 2)
    tensor([[[[ True, False],
              [ True,  True]]]])
    """
    shape = 1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN
    if _get_mod_type(mod_fn) is _ModificationType.MASK_MOD:
        return applied(mod_fn, shape, device).clone()
    scores = applied(mod_fn, shape, device, torchshim.zeros(shape, device=device))
    return torchshim.logical_not(torchshim.isneginf(scores))


# Blocks ------------------------------------------------------------------------------


def _to_dense(counts: Tensor, indices: Tensor) -> Tensor:
    """Which blocks are listed: `counts` of `indices` in every row."""
    columns = indices.shape[-1]
    listed = torchshim.arange(columns, device=indices.device) < counts.unsqueeze(-1)
    hit = indices.unsqueeze(-1) == torchshim.arange(columns, device=indices.device)
    return torchshim.logical_and(hit, listed.unsqueeze(-1)).any(-2).to(torchshim.int32)


def _to_ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """How many blocks of a row are there, and all columns with those before others."""
    dense = dense.to(torchshim.int32)
    order = torchshim.argsort(dense, dim=-1, descending=True, stable=True)
    return dense.sum(-1).to(torchshim.int32), order.to(torchshim.int32)


def _transposed(counts: Tensor | None, indices: Tensor | None) -> Any:
    if counts is None or indices is None:
        return None, None
    return _to_ordered(_to_dense(counts, indices).transpose(-2, -1))


class BlockMask:
    """A mask by blocks of queries and keys, and the function that decides within them.

    `kv_num_blocks` and `kv_indices` list the blocks that are partly there for every
    row of blocks, `full_kv_…` those that are there in whole, `q_…` the same by columns.
    Made by `create_block_mask`. Follows ``flex_attention.BlockMask``.
    """

    _TENSORS = (
        "kv_num_blocks",
        "kv_indices",
        "full_kv_num_blocks",
        "full_kv_indices",
        "q_num_blocks",
        "q_indices",
        "full_q_num_blocks",
        "full_q_indices",
    )

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = _BLOCKS,
        mask_mod: MaskMod = noop_mask,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        for side, pair in (
            ("kv", (full_kv_num_blocks, full_kv_indices)),
            ("q", (full_q_num_blocks, full_q_indices)),
        ):
            if (pair[0] is None) != (pair[1] is None):
                raise AssertionError(
                    f"full_{side}_num_blocks and full_{side}_indices must be both "
                    "provided or omitted"
                )
        self.seq_lengths = seq_lengths
        self.kv_num_blocks = kv_num_blocks
        self.kv_indices = kv_indices
        self.full_kv_num_blocks = full_kv_num_blocks
        self.full_kv_indices = full_kv_indices
        self.q_num_blocks = q_num_blocks
        self.q_indices = q_indices
        self.full_q_num_blocks = full_q_num_blocks
        self.full_q_indices = full_q_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: MaskMod | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> Self:
        """The mask with the lists by columns made of those by rows."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError(
                "full_kv_num_blocks and full_kv_indices must be both provided or "
                "omitted"
            )
        partial = full = (None, None)
        if compute_q_blocks:
            partial = _transposed(kv_num_blocks, kv_indices)
            full = _transposed(full_kv_num_blocks, full_kv_indices)
        size = BLOCK_SIZE
        if isinstance(size, int):
            size = size, size
        if seq_lengths is None:
            rows, columns = kv_indices.shape[-2:]
            seq_lengths = rows * size[0], columns * size[1]
        return cls(
            seq_lengths,
            kv_num_blocks,
            kv_indices,
            full_kv_num_blocks,
            full_kv_indices,
            *partial,
            *full,
            BLOCK_SIZE=size,
            mask_mod=noop_mask if mask_mod is None else mask_mod,
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """(batch, heads, queries, keys)"""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """How many scores there are."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """The percentage of the scores that lies in no block."""
        blocks = self.kv_num_blocks.sum().item()
        if self.full_kv_num_blocks is not None:
            blocks += self.full_kv_num_blocks.sum().item()
        computed = blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1]
        return 100 * (1 - computed / self.numel())

    def to_dense(self) -> Tensor:
        """Which blocks are there, as int32 of shape (batch, heads, rows, columns)."""
        dense = _to_dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            full = _to_dense(self.full_kv_num_blocks, self.full_kv_indices)
            dense = torchshim.bitwise_or(dense, full)
        return dense

    def to(self, device: Any) -> BlockMask:
        """The mask on another device."""
        tensors = (getattr(self, name) for name in self._TENSORS)
        moved = [None if t is None else t.to(device) for t in tensors]
        return BlockMask(self.seq_lengths, *moved, self.BLOCK_SIZE, self.mask_mod)  # type: ignore[arg-type]

    def _derived(
        self, pick: Callable[..., Any], mask_mod: MaskMod, lengths: Any
    ) -> Any:
        kv = pick(self.kv_num_blocks, self.kv_indices)
        full: Any = (None, None)
        if self.full_kv_num_blocks is not None:
            full = pick(self.full_kv_num_blocks, self.full_kv_indices)
        return BlockMask.from_kv_blocks(
            *kv,
            *full,
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=mask_mod,
            seq_lengths=lengths,
            compute_q_blocks=self.q_indices is not None,
        )

    def __getitem__(self, index: Any) -> BlockMask:
        index = index if isinstance(index, tuple) else (index,)
        padded = (*index, slice(None), slice(None), slice(None))[:3]
        found = tuple(
            (slice(i + n, i + n + 1) if -n <= i < 0 else slice(i, i + 1))
            if isinstance(i, int)
            else i
            for i, n in zip(padded, self.kv_num_blocks.shape[:3], strict=True)
        )
        return self._derived(
            lambda counts, indices: (counts[found], indices[found]),
            sliced_mask_mod,
            self.seq_lengths,
        )

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        rows = -(-new_q_len // self.BLOCK_SIZE[0])
        columns = -(-new_kv_len // self.BLOCK_SIZE[1])

        def pick(counts: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
            indices = indices[:, :, :rows, :columns]
            counts = torchshim.clamp(counts[:, :, :rows], max=columns)
            inside = indices < counts[:, :, :, None]
            return inside.sum(-1).to(torchshim.int32), indices

        return self._derived(pick, self.mask_mod, (new_q_len, new_kv_len))

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """Its fields, with the lengths and the block size taken apart or not."""
        lengths = self.seq_lengths if flatten else (self.seq_lengths,)
        size = self.BLOCK_SIZE if flatten else (self.BLOCK_SIZE,)
        tensors = (getattr(self, name) for name in self._TENSORS)
        # What PyTorch's deterministic kernels write in which order: none.
        return (*lengths, *tensors, None, None, None, None, *size, self.mask_mod)

    def to_string(
        self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4
    ) -> str:
        """A drawing of the blocks of every batch and head, at most `limit` of them."""
        dense = self.to_dense()
        *batch, rows, columns = dense.shape
        grid = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        if grid_size == -1:
            grid = rows, columns
        step = max(1, -(-rows // grid[0])), max(1, -(-columns // grid[1]))
        values = dense.tolist()
        drawings = []
        for number, at in enumerate(itertools.product(*map(range, batch))):
            if number == limit:
                drawings += [
                    "...",
                    "To print out more, set BlockMask.to_string(limit=N)",
                    "You can also index (BlockMask[batch, head]) to choose a specific "
                    "batch or head",
                ]
                break
            block = values
            for i in at:
                block = block[i]
            text = f"{at}\n"
            for r in range(0, rows, step[0]):
                for c in range(0, columns, step[1]):
                    part = [
                        x
                        for row in block[r : r + step[0]]
                        for x in row[c : c + step[1]]
                    ]
                    text += {0: " ", len(part): "█"}.get(sum(part), "░") * 2
                text += "\n"
            drawings.append(text)
        return "\n".join(drawings)

    def __str__(self) -> str:
        drawing = self.to_string().strip()
        return (
            f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n"
            f"{drawing}\n)"
        )

    def __repr__(self) -> str:
        lines = []
        for name in self._TENSORS:
            value = getattr(self, name)
            lines.append(f"{name}={None if value is None else value.shape}")
        called = getattr(self.mask_mod, "__name__", self.mask_mod)
        lines += [
            f"BLOCK_SIZE={self.BLOCK_SIZE}",
            f"shape={self.shape}",
            f"sparsity={self.sparsity():.2f}%",
            f"mask_mod={called}",
        ]
        return "BlockMask(\n    " + ",\n    ".join(lines) + "\n)"


def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """The blocks of a mask given as a function of batch, head, query and key.

    >>> def causal(b, h, q_idx, kv_idx):
    ...     return q_idx >= kv_idx
    >>> create_block_mask(causal, 1, 1, 256, 256).kv_num_blocks
    tensor([[[1, 1]]], dtype=torch.int32)
    """
    if _get_mod_type(mask_mod) is not _ModificationType.MASK_MOD:
        raise AssertionError(
            f"create-block_mask requires a mask_mod function! Got {mask_mod}"
        )
    if not isinstance(dq_kv_order, bool):
        raise ValueError("dq_kv_order must be a bool when using create_block_mask")
    if compute_dq_write_order:
        raise NotImplementedError("compute_dq_write_order=True is not supported")
    if _compile:
        warn(
            "_compile flag on create_block_mask was originally added to work around a "
            "torch.compile limitation. That limitation has since been addressed. So, "
            "to compile create_block_mask, we suggest doing "
            "torch.compile(create_block_mask). This still works for now, but will be "
            "removed in the future.",
            DeprecationWarning,
        )
    rows, columns = (BLOCK_SIZE,) * 2 if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    mask = F.pad(mask, (0, -KV_LEN % columns, 0, -Q_LEN % rows))
    batch, heads, queries, keys = mask.shape
    blocks = mask.reshape(batch, heads, queries // rows, rows, keys // columns, columns)
    count = blocks.sum((-3, -1))
    partial = count > 0
    full = (None, None)
    if separate_full_blocks:
        whole = count == rows * columns
        full = _to_ordered(whole)
        partial = torchshim.logical_and(partial, torchshim.logical_not(whole))
    return BlockMask.from_kv_blocks(
        *_to_ordered(partial),
        *full,
        BLOCK_SIZE=(rows, columns),
        mask_mod=mask_mod,
        seq_lengths=(Q_LEN, KV_LEN),
    )
