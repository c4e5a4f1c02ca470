"""What is known of an event before it runs: metas, who gets gradients, errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from torchshim._core.batching import results_of, seen_by, wrong_product
from torchshim._core.call import Call, PythonCall
from torchshim._core.dependence import dependence, is_one_node, is_telling
from torchshim._core.device import get_default_device
from torchshim._core.dtypes import INTEGER, array_dtype, get_default_dtype
from torchshim._core.extent import COUNTS, check_extent, raise_lack, too_many_elements
from torchshim._core.meta import (
    Meta,
    broadcast_shape,
    elementwise_strides,
    meta_of,
)
from torchshim._core.naming import WRAPPED
from torchshim._core.op import Arranged, Op
from torchshim._core.promotion import (
    COMPLEX_TO_FLOAT,
    NO_OPMATH,
    castable,
    check_result,
    holds,
    no_element,
    opmath,
)
from torchshim._core.state import WARNED
from torchshim._core.template import Number, ScalarHole
from torchshim._errors import warn

INFERENCE_SAVED = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created "
    "in inference mode in computation tracked by autograd. To work around this, you "
    "can make a clone to get a normal tensor and use it in autograd, or use "
    "`torch.no_grad()` instead of `torch.inference_mode()`."
)
_COPIES = ("CloneBackward0", "ToCopyBackward0", "CopyBackwards")


# Metas of the results, numbers of the operands that get gradients, and whether the
# results are views.
Inferred = tuple[tuple[Meta, ...], tuple[int, ...], bool]
# What was inferred, by (call, mode, operands): metas and calls are interned.
_known: dict[tuple[Any, ...], Inferred] = {}
_KNOWN_BOUND = 20_000


class Inference:
    """Infers the results of a call from the metas of its operands."""

    bits: int
    grad: bool
    inference: bool
    # Which levels of `grad` and its like differentiate, see `Meta.levels`.
    tracking: int

    def infer(self, call: Any, metas: Sequence[Meta]) -> Inferred:
        """What follows from a call's operands; raises PyTorch's error if it refuses."""
        if not metas or isinstance(call, PythonCall):
            return self._inferred(call, metas)
        key = call, self.bits, *metas
        found = _known.get(key)
        if found is None:
            if len(_known) >= _KNOWN_BOUND:
                _known.clear()
            found = _known[key] = self._inferred(call, metas)
        return found

    def _inferred(self, call: Any, metas: Sequence[Meta]) -> Inferred:
        op: Op | None = call.op
        device = self.device_of(call, metas)
        _check_operands(call, metas)
        avals = _infer_avals(call, metas)
        _check_extents(op, avals, device)
        batches = [m.batch for m in metas if m.batch]
        batch: list[Any] = [()] * len(avals)
        if batches or call.levels:
            found = results_of(call, metas, avals)
            batch = [b for _, b in found]
            avals = tuple((s, d) for (s, _), (_, d) in zip(found, avals, strict=True))
        wrt, levels = self._tracked(call, metas)
        if op is not None and op.view is not None:
            return self._view_metas(call, metas, avals, wrt, device, batch, levels)
        if call.write:
            check_kept(metas[0], avals[0][0])
        # Where results depend on some of the operands only: on which, for each result.
        sources: Sequence[Any] | None = None
        telling = is_telling(call, metas) and not is_one_node(call)
        if wrt and not (levels or batches) and telling:
            sources = dependence(call, tuple((m.shape, m.dtype) for m in metas))
        replaced = _replaced_by(call, metas)
        results = []
        for k, ((shape, dtype), mapped) in enumerate(zip(avals, batch, strict=True)):
            grad = bool(wrt or call.starts)
            if sources is not None:
                grad = not sources[k].isdisjoint(wrt)
            grad = grad and (dtype.is_floating_point or dtype.is_complex)
            if replaced:
                strides, offset = replaced[k].strides, replaced[k].offset
            else:
                strides, offset = self._placement(call, k, shape, metas)
            inference = metas[0].inference if call.write else self.inference
            results.append(
                meta_of(
                    shape,
                    dtype,
                    device,
                    strides,
                    offset,
                    requires_grad=grad,
                    leaf=not grad,
                    inference=inference,
                    batch=mapped,
                    levels=levels,
                )
            )
        if not any(m.requires_grad for m in results):
            wrt = ()
        elif op is not None and op.real_gradients and not call.write:
            _check_real(op.real_gradients, call, metas, results)
        return tuple(results), wrt, False

    def _tracked(self, call: Any, metas: Sequence[Meta]) -> tuple[tuple[int, ...], int]:
        """Which operands get gradients, and the `Meta.levels` of the results."""
        wrt: tuple[int, ...] = ()
        levels = 0
        if (
            self.grad
            and not self.inference
            and any(m.requires_grad for m in metas)
            and not (all(m.inference for m in metas) and _unseen(call))
        ):
            wrt = tuple(
                i
                for i, m in enumerate(metas)
                if m.requires_grad
                and call.differentiable(i)
                and (m.levels or 1) & self.tracking
            )
            for i in wrt:
                levels |= (metas[i].levels or 1) & self.tracking
        if call.starts:
            levels |= 1 << call.starts
        if wrt and any(m.inference for m in metas):
            # What a transform differentiates holds such tensors as its own.
            own = [i for i in wrt if (metas[i].levels or 1) & self.tracking & 1]
            if own:
                self._refuse_inference(call, metas, own)
        return wrt, 0 if levels == 1 else levels

    def _placement(
        self, call: Any, k: int, shape: Any, metas: Sequence[Meta]
    ) -> tuple[Any, int]:
        """Strides (None: contiguous) and offset of a result that is no view."""
        if call.write or call.starts:
            return metas[0].strides, metas[0].offset
        if isinstance(call, PythonCall):
            made = metas[call.n_inputs + k]
            return made.strides, made.offset
        if call.op is not None and call.op.layout is not None:
            return self._layout(call, shape, metas), 0
        return None, 0

    def noticed(
        self,
        key: tuple[Any, ...],
        op: Op,
        template: Sequence[Any],
        operands: Sequence[tuple[int, Meta]],
        values: Sequence[Any],
    ) -> tuple[Any, ...]:
        """Warns as the operator does, and refuses numbers that do not fit.

        The key then, which no hot path looks up where values are to be seen each time:
        where there was a warning, and for numbers that elements of a whole type cannot
        hold. Those too large for floating types are found where an event is new.
        """
        call: Call | None = None
        metas = [meta for _, meta in operands]
        if op.warns is not None:
            call = Call(op, tuple(template), get_default_dtype(), op.writes)
            text = op.warns(*call.arguments(metas, call.placeholders()))
            if text is not None:
                warn(text)
                return WARNED, *key
        if not op.fits:
            return key
        left = iter(values)
        kind = None
        seen = lax = False
        for param, entry in zip(op.params, template, strict=True):
            if isinstance(entry, Number):
                value = entry.value
            elif isinstance(entry, ScalarHole):
                value = next(left)
            else:
                continue
            if param.name not in op.fits or (value.__class__ is int and value == 1):
                continue
            if value.__class__ is complex:
                continue  # the operator's own function looks at them
            if kind is None:
                kind = metas[0].dtype
                if op.promote is not None:
                    default = get_default_dtype()
                    call = call or Call(op, tuple(template), default, op.writes)
                    kind = call.promoted(metas)
                    # Of half types PyTorch looks at a wider one, or does not look.
                    lax = opmath(kind) is not kind and (
                        op.promote != NO_OPMATH or op.operands is not None
                    )
            if not lax and not holds(kind, value):
                call = call or Call(op, tuple(template), get_default_dtype(), op.writes)
                self.infer(call, metas)  # raises what else is wrong
                raise RuntimeError(no_element(array_dtype(kind)))
            if kind.category == INTEGER and isinstance(entry, ScalarHole):
                seen |= kind.itemsize < 8 or not entry.integer
        return (WARNED, *key) if seen else key

    @staticmethod
    def _refuse_inference(call: Any, metas: Sequence[Meta], wrt: Sequence[int]) -> None:
        """Raises if the backward would need a tensor made in inference mode."""
        if not isinstance(call, Call):
            return
        saved = call.saved(wrt)
        for owner, meta in zip(call.owners, metas, strict=True):
            if meta.inference and owner in saved:
                raise RuntimeError(INFERENCE_SAVED)

    @staticmethod
    def _layout(call: Call, shape: Any, metas: Sequence[Meta]) -> Any:
        op: Any = call.op
        pairs = [(tuple(m.shape), m.strides) for m in metas]
        if op.layout == "preserve":
            return elementwise_strides(tuple(shape), pairs)
        if isinstance(op.layout, Arranged):
            args = call.arguments(pairs, call.placeholders())
            return op.layout.strides(tuple(shape), *args)
        return op.layout(tuple(shape), pairs)

    def _view_metas(
        self,
        call: Call,
        metas: Sequence[Meta],
        avals: Any,
        wrt: tuple[int, ...],
        device: Any,
        batch: Sequence[Any],
        levels: int,
    ) -> tuple[tuple[Meta, ...], tuple[int, ...], bool]:
        base = metas[0]
        assert call.op.view is not None
        args = call.arguments([None] * len(metas), [0] * call.n_scalars)[1:]
        geometry = call.op.view.geometry(
            tuple(base.shape), base.strides, base.offset, *args
        )
        if geometry is None:
            results = tuple(
                meta_of(
                    shape,
                    dtype,
                    device,
                    requires_grad=bool(wrt),
                    leaf=not wrt,
                    inference=self.inference,
                    batch=mapped,
                    levels=levels,
                )
                for (shape, dtype), mapped in zip(avals, batch, strict=True)
            )
            return results, wrt, False
        if isinstance(geometry, tuple):
            geometry = [geometry]
        # A view made under `no_grad` requires grad if its base does, but has no edge.
        untracked = self.inference or not self.grad
        shown = bool(wrt) or (
            base.requires_grad
            and untracked
            and not call.op.view.detached
            and not base.inference
        )
        results = []
        for (shape, strides, offset), (inferred, dtype), mapped in zip(
            geometry, avals, batch, strict=True
        ):
            assert tuple(shape) == tuple(inferred), (call, shape, inferred)
            grad = shown and (dtype.is_floating_point or dtype.is_complex)
            results.append(
                meta_of(
                    shape,
                    dtype,
                    device,
                    tuple(strides),
                    offset,
                    requires_grad=grad,
                    leaf=not (grad and wrt),
                    inference=base.inference,
                    batch=mapped,
                    levels=levels,
                )
            )
        return tuple(results), wrt, True

    @staticmethod
    def device_of(call: Any, metas: Sequence[Meta]) -> Any:
        """The one device of the operands (0-dim CPU tensors go anywhere).

        Of what is made anew, or moved, the device that the call names.
        """
        if call.device is not None:
            return call.device
        device = None
        scalar = True  # whether all tensors so far were 0-dim on the CPU
        for meta in metas:
            if device is None or (scalar and device.type == "cpu"):
                device, scalar = meta.device, not meta.shape
            elif meta.device != device and (meta.shape or meta.device.type != "cpu"):
                if "meta" in (device.type, meta.device.type):
                    raise RuntimeError(
                        f"Tensor on device {meta.device} is not on the expected "
                        f"device {device}!"
                    )
                raise RuntimeError(
                    "Expected all tensors to be on the same device, but found at "
                    f"least two devices, {device} and {meta.device}!"
                )
        return get_default_device() if device is None else device


def _infer_avals(call: Any, metas: Sequence[Meta]) -> Any:
    """Shapes and dtypes of a call's results; raises PyTorch's error if it refuses."""
    try:
        return call.infer(tuple((seen_by(call, m), m.dtype) for m in metas))
    except NotImplementedError as error:
        raise _of_half_types(error, call, metas) from None
    except (MemoryError, ValueError) as error:
        raise_lack(error)
        raise
    except RuntimeError as error:
        text = wrong_product(call, metas)
        raise (error if text is None else RuntimeError(text)) from None


def _replaced_by(call: Any, metas: Sequence[Meta]) -> Sequence[Meta]:
    """The operands that the results of a mutating operator replace, in their order."""
    op: Op | None = call.op
    if op is None or not op.mutates:
        return ()
    owned = zip(metas, call.owners, strict=True)
    return [m for m, owner in owned if owner in op.mutates]


def _of_half_types(
    error: NotImplementedError, call: Any, metas: Sequence[Meta]
) -> NotImplementedError:
    """What a function says of float32, where half types are computed in that."""
    if isinstance(call, Call) and call.op.promote not in (None, NO_OPMATH):
        kind = call.promoted(metas)
        wide, text = f"'{opmath(kind).scalar_name}'", str(error)
        if opmath(kind) is not kind and text.endswith(wide):
            return NotImplementedError(text.replace(wide, f"'{kind.scalar_name}'"))
    return error


def _check_operands(call: Any, metas: Sequence[Meta]) -> None:
    """Raises what an operator refuses of its operands without a trace."""
    op: Op | None = call.op
    if op is None:
        return
    if call.write and op.inplace_check is not None:
        op.inplace_check(*call.arguments(metas, call.placeholders()))
    if op.typecheck is not None:
        op.typecheck(*call.arguments(metas, call.placeholders()))
    if call.write and op.promote is not None:
        if op.promote == COMPLEX_TO_FLOAT and metas[0].dtype.is_complex:
            raise RuntimeError(
                f"In-place {op.public.rstrip('_')} is not supported for "
                "complex tensors."
            )
        _check_result(op, metas, call.promoted(metas))


def _check_extents(op: Op | None, avals: Any, device: Any) -> None:
    """Raises where a result has more elements than can be counted, or than fit."""
    if op is not None and op.view is not None:
        if any(math.prod(shape) >= COUNTS for shape, _ in avals):
            raise too_many_elements()
    elif device.type == "cpu":
        for shape, dtype in avals:
            check_extent(shape, dtype.itemsize)


def _unseen(call: Any) -> bool:
    """Whether autograd passes over a call that has inference tensors alone.

    In PyTorch it sees those that take a number for a tensor and those that copy.
    """
    if not isinstance(call, Call) or call.op.grad_fn in _COPIES:
        return False
    return call.n_arrays > 1 or call.op.name.rstrip("_") not in WRAPPED


def check_kept(target: Meta, shape: tuple[int, ...]) -> None:
    """Raises where what is written in place has another shape than its tensor."""
    if shape != tuple(target.shape):
        raise RuntimeError(
            f"output with shape {list(target.shape)} doesn't match the broadcast shape "
            f"{list(shape)}"
        )


def _check_result(op: Op, metas: Sequence[Meta], result: Any) -> None:
    """Raises where an in-place operator's result does not fit its tensor.

    PyTorch tells of shapes before dtypes, and both before what a kernel lacks.
    """
    given = metas[0].dtype
    if isinstance(op.castable, str) and not castable(result, given):
        raise RuntimeError(op.castable.format(want=result, have=given))
    if op.layout == "preserve" and len(metas) > 1:
        check_kept(metas[0], broadcast_shape([tuple(m.shape) for m in metas]))
    check_result(result, given)


def _check_real(
    name: str | Callable[..., str],
    call: Any,
    metas: Sequence[Meta],
    results: Sequence[Meta],
) -> None:
    if any(m.requires_grad and m.dtype.is_complex for m in results):
        if not isinstance(name, str):
            name = name(*call.arguments(metas, call.placeholders()))
        raise RuntimeError(
            f"{name} does not support automatic differentiation for outputs with "
            "complex dtype."
        )
