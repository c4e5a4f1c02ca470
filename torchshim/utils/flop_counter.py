"""Counting the operations of products, as PyTorch counts them.

A counter looks at what is recorded while its block is in force, by the ways that
anomaly detection has: every event of an operator, every event that a backward comes to.
What PyTorch's dispatcher would be asked for in the place of an event follows from
shapes and strides alone; the formulas are PyTorch's for its CPU kernels, whose fused
attention is not counted. An event with a product whose parts are not known raises.
https://github.com/pytorch/pytorch/blob/v2.13.0/torch/utils/flop_counter.py
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from torchshim import _warnings as warnings
from torchshim._core import record
from torchshim._core.record import local, refresh_modes
from torchshim._core.state import CALL
from torchshim._core.walk import watcher
from torchshim._errors import Unsupported
from torchshim._pytree import tree_leaves, tree_map
from torchshim._tensor import Tensor
from torchshim.backends.mha import get_fastpath_enabled
from torchshim.nn.modules.activation import MultiheadAttention
from torchshim.nn.modules.module import Module
from torchshim.nn.modules.transformer import TransformerEncoderLayer
from torchshim.ops import OpOverloadPacket, aten
from torchshim.optim._muon import Muon
from torchshim.optim.optimizer import register_optimizer_step_pre_hook
from torchshim.utils._flop_products import backward_products, products
from torchshim.utils.module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

flop_registry: dict[Any, Any] = {}


def get_shape(i: Any) -> Any:
    """The shape of a tensor; anything else as it is."""
    return i.shape if isinstance(i, Tensor) else i


def shape_wrapper(f: Callable[..., int]) -> Callable[..., int]:
    """A formula over shapes that may be called with tensors."""

    @functools.wraps(f)
    def of_shapes(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out = tree_map(get_shape, (args, kwargs, out_val))
        return f(*args, out_shape=out, **kwargs)

    return of_shapes


def register_flop_formula(
    targets: Any, get_raw: bool = False
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Makes a function the formula of operators.

    >>> import torchshim as torch
    >>> register_flop_formula(torch.ops.aten.mm)(len)
    Traceback (most recent call last):
    RuntimeError: duplicate registrations for aten.mm
    """

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        if not get_raw:
            formula = shape_wrapper(formula)
        for target in tree_leaves(targets):
            if not isinstance(target, OpOverloadPacket):
                raise ValueError(
                    "register_flop_formula(targets): expected each target to be "
                    "OpOverloadPacket (i.e. torch.ops.mylib.foo), JitFunction, or "
                    f"HigherOrderOperator, got {target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            _refuse_unseen(target)
            flop_registry[target] = formula
        return formula

    return register


_SEEN = ("mm", "addmm", "bmm", "baddbmm", "convolution", "convolution_backward")


def _refuse_unseen(target: Any) -> None:
    if getattr(target, "_namespace", "") != "aten" or target.__name__ not in _SEEN:
        raise Unsupported(
            f"a formula for {target} is not supported: torchshim counts products "
            f"only, which are {', '.join(f'aten.{name}' for name in _SEEN)}"
        )


@register_flop_formula(aten.mm)
def mm_flop(a: Any, b: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Of a matrix times a matrix."""
    (m, k), (k2, n) = a, b
    if k != k2:
        raise AssertionError(
            f"matmul: inner dimensions must match (k == k2), got {k} and {k2}"
        )
    return m * n * 2 * k


@register_flop_formula(aten.addmm)
def addmm_flop(x: Any, a: Any, b: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Of a matrix times a matrix; the sum is not counted."""
    return mm_flop(a, b)


@register_flop_formula(aten.bmm)
def bmm_flop(a: Any, b: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Of matrices times matrices."""
    (count, m, k), (count2, k2, n) = a, b
    if count != count2:
        raise AssertionError(
            f"bmm: batch dimensions must match (b == b2), got {count} and {count2}"
        )
    if k != k2:
        raise AssertionError(
            f"bmm: inner dimensions must match (k == k2), got {k} and {k2}"
        )
    return count * m * n * 2 * k


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(x: Any, a: Any, b: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Of matrices times matrices; the sum is not counted."""
    return bmm_flop(a, b)


def conv_flop_count(x: Any, w: Any, out: Any, transposed: bool = False) -> int:
    """Of a convolution; the bias is not counted."""
    places = prod((x if transposed else out)[2:])
    return places * prod(w[2:]) * x[0] * w[0] * w[1] * 2


@register_flop_formula(aten.convolution)
def conv_flop(
    x: Any,
    w: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """Of a convolution; the bias is not counted."""
    return conv_flop_count(x, w, out_shape, transposed=transposed)


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(
    grad: Any,
    x: Any,
    w: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: Any,
    output_mask: Sequence[bool],
    out_shape: Any,
    **kwargs: Any,
) -> int:
    """Of the gradients of a convolution that `output_mask` asks for.

    That of the input is a convolution of the other kind; that of the weight one of the
    input with the gradient, examples and channels exchanged.
    """

    def t(shape: Any) -> Any:
        return [shape[1], shape[0], *shape[2:]]

    count = 0
    if output_mask[0]:
        count += conv_flop_count(grad, w, get_shape(out_shape[0]), not transposed)
    if output_mask[1]:
        first, second = (grad, x) if transposed else (x, grad)
        count += conv_flop_count(t(first), t(second), t(get_shape(out_shape[1])))
    return count


_SUFFIXES = ["", "K", "M", "B", "T"]


def get_suffix_str(number: int) -> str:
    """The unit in which a count has three to five digits before the point."""
    return _SUFFIXES[max(0, min(len(_SUFFIXES) - 1, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number: int, suffix: str) -> str:
    """A count in a unit."""
    return f"{number / 1000 ** _SUFFIXES.index(suffix):.3f}{suffix}"


def convert_to_percent_str(num: int, denom: int) -> str:
    """A part of a count."""
    return "0%" if denom == 0 else f"{num / denom:.2%}"


class _Tracker(ModuleTracker):
    """Refuses modules for which PyTorch calls kernels whose products it leaves out."""

    def _before(self, module: Module, inputs: Any) -> None:
        if _goes_fast(module, inputs):
            name = type(module).__name__
            raise Unsupported(
                f"FlopCounterMode: PyTorch takes a fast path for {name} here, which it "
                "counts nothing of; call "
                "torch.backends.mha.set_fastpath_enabled(False) to count its products"
            )
        super()._before(module, inputs)


def _refuse_muon(optimizer: Any, args: Any, kwargs: Any) -> None:
    """Its step is one operator here."""
    if isinstance(optimizer, Muon):
        raise Unsupported("FlopCounterMode: the products of Muon's step")


def _goes_fast(module: Module, inputs: Any) -> bool:
    """Whether PyTorch runs self-attention, or a layer around it, as one kernel."""
    if module.training or not get_fastpath_enabled():
        return False
    tensors = [x for x in inputs if isinstance(x, Tensor)]
    if isinstance(module, TransformerEncoderLayer):
        attention = module.self_attn
    elif isinstance(module, MultiheadAttention) and len(tensors) > 2:
        attention = module
        if not tensors[0] is tensors[1] is tensors[2]:
            return False
    else:
        return False
    tracked = any(x.requires_grad for x in (*tensors, *module.parameters()))
    return attention.batch_first and not (local.rec.grad and tracked)


class FlopCounterMode:
    """A block that counts the operations of products, by module and operator.

    https://github.com/pytorch/pytorch/blob/v2.13.0/torch/utils/flop_counter.py

    >>> import torchshim as torch
    >>> with FlopCounterMode(display=False) as counter:
    ...     _ = torch.ones(2, 3) @ torch.ones(3, 4)
    >>> counter.get_total_flops()
    48
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:
        self.flop_counts: dict[str, dict[Any, int]]
        self.flop_counts = defaultdict(lambda: defaultdict(int))
        self.depth = depth
        self.display = display
        if mods is not None:
            warnings.warn(
                "mods argument is not needed anymore, you can stop passing it",
                stacklevel=2,
            )
        self.flop_registry = dict(flop_registry)
        for packet, formula in (custom_mapping or {}).items():
            _refuse_unseen(packet)
            if getattr(formula, "_get_raw", False):
                raise Unsupported(
                    "formulas that take tensors are not supported: torchshim's counter "
                    "knows shapes only"
                )
            self.flop_registry[packet] = shape_wrapper(formula)
        self.mod_tracker = _Tracker()

    def get_total_flops(self) -> int:
        """All that was counted."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """What was counted, by the names of modules and then by operators."""
        return {k: dict(v) for k, v in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """What was counted, as a table; it takes the package tabulate."""
        if depth is None:
            depth = self.depth
        if depth is None:
            depth = 999999
        import tabulate  # pyright: ignore[reportMissingModuleSource]

        tabulate.PRESERVE_WHITESPACE = True
        total = self.get_total_flops()
        suffix = get_suffix_str(total)

        def row(name: str, count: int) -> list[str]:
            share = convert_to_percent_str(count, total)
            return [name, convert_num_with_suffix(count, suffix), share]

        def rows(name: str, indent: int) -> list[list[str]]:
            counts, space = self.flop_counts[name], " " * indent
            return [
                row(space + name, sum(counts.values())),
                *(row(f"{space} - {k}", count) for k, count in counts.items()),
            ]

        values: list[list[str]] = []
        covered = False
        for name in sorted(self.flop_counts):
            if name != "Global" and name.count(".") + 1 <= depth:
                values += rows(name, name.count("."))
                covered |= sum(self.flop_counts[name].values()) >= total
        if "Global" in self.flop_counts and not covered:
            for value in values:
                value[0] = f" {value[0]}"
            values = rows("Global", 0) + values
        return tabulate.tabulate(
            values or [["Global", "0", "0%"]],
            headers=["Module", "FLOP", "% Total"],
            colalign=("left", "right", "right"),
        )

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self._rec = local.rec
        self._seen: tuple[int, set[int]] = self._rec.recording.seq, set()
        self._outer = watcher[:]
        watcher[:] = [self._backward]
        record.watchers.append(self._forward)
        self._steps = register_optimizer_step_pre_hook(_refuse_muon)
        refresh_modes()
        return self

    def __exit__(self, *error: object) -> None:
        undisturbed = watcher == [self._backward]
        watcher[:] = self._outer
        if self._forward in record.watchers:
            record.watchers.remove(self._forward)
        self._steps.remove()
        refresh_modes()
        self.mod_tracker.__exit__()
        if not undisturbed and error[0] is None:
            raise Unsupported(
                "FlopCounterMode: anomaly detection was switched in the block: what "
                "was counted is not all of it"
            )
        if self.display:
            print(self.get_table(self.depth))

    def _forward(self, rec: Any, depth: int) -> None:
        """Counts the events of an operator."""
        if rec is not self._rec:
            return
        number = rec.recording.seq
        if number != self._seen[0]:
            self._seen = number, set()
            depth = 0
        # Saving operands may call operators, too. One that a checkpoint ends at is not
        # called by PyTorch: it was recorded, but nobody is told.
        seen = self._seen[1]
        events = []
        state = rec.state
        while state.depth > depth:
            if state.kind == CALL and state.depth not in seen:
                seen.add(state.depth)
                events.append(state)
            state = state.parent
        for event in reversed(events):
            self._count(products(event))

    def _backward(
        self, run: Any, recording: Any, event: Any, grads: Any, wrt: Any
    ) -> Any:
        """Counts the gradient of one event."""
        if local.rec is self._rec and wrt:
            self._count(backward_products(event, wrt))
        if self._outer:
            return self._outer[0](run, recording, event, grads, wrt)
        return run(recording, event, grads, wrt)

    def _count(self, found: Sequence[tuple[str, tuple[Any, ...], Any]]) -> None:
        for name, shapes, out in found:
            packet = getattr(aten, name)
            count = self.flop_registry[packet](*shapes, out_val=out)
            for module in self.mod_tracker.parents:
                self.flop_counts[module][packet] += count
