"""Activation checkpointing: memory for computing twice (``torch.utils.checkpoint``).

https://docs.pytorch.org/docs/2.13/checkpoint.html

What a checkpointed function computed on the way is not kept for backward; the backward
computes it again. XLA would merge the second time with the first, as both may be in one
program, so what the function is given goes through an optimization barrier
(`_recompute_input`), which also waits for the gradient that makes it necessary.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torchshim
from torchshim import _warnings as warnings
from torchshim._core.random import restore, snapshot
from torchshim._core.record import local
from torchshim._core.walk import walking
from torchshim._derived import fns
from torchshim._functions.backward import backward
from torchshim._functions.composed import Composed
from torchshim._tensor import Tensor
from torchshim.amp import is_autocast_available
from torchshim.autograd.function import Function
from torchshim.autograd.grad_mode import enable_grad, no_grad
from torchshim.nn.modules.container import Sequential
from torchshim.utils import _checkpoint_frame as frames
from torchshim.utils._checkpoint_frame import (
    DETERMINISM_CHECKS,
    CheckpointError,
    CheckpointFrame,
    GraphExecGroup,
    checkpoint_hooks,
)
from torchshim.utils._checkpoint_frame import (
    _default_meta_extractor as _default_meta_extractor,
)
from torchshim.utils._checkpoint_state import (
    DefaultDeviceType,
    Size,
    forward_settings,
    get_device_states,
    infer_device_type,
    set_device_states,
)
from torchshim.utils._selective_checkpoint import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "GraphExecGroup",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]


class _Overrides:
    """What the context managers below force on every checkpoint; None: nothing."""

    debug: bool | None = None
    early_stop: bool | None = None


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Within it the argument `debug` of `checkpoint` is this, unless None.

    https://docs.pytorch.org/docs/2.13/checkpoint.html
    """
    before = _Overrides.debug
    _Overrides.debug = enabled
    try:
        yield
    finally:
        _Overrides.debug = before


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Within it the argument `early_stop` of `checkpoint` is this.

    https://docs.pytorch.org/docs/2.13/checkpoint.html#torch.utils.checkpoint.set_checkpoint_early_stop
    """
    before = _Overrides.early_stop
    _Overrides.early_stop = enable
    try:
        yield
    finally:
        _Overrides.early_stop = before


def noop_context_fn() -> tuple[Any, Any]:
    """The default `context_fn`: contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Tensors without their history, which require grad as before.

    Raises RuntimeError for anything but a tuple.
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    return tuple(_detached(x) if isinstance(x, Tensor) else x for x in inputs)


def _detached(tensor: Tensor, after: Iterable[Tensor] = ()) -> Tensor:
    after = list(after)
    with no_grad():
        value = fns._recompute_input(tensor, after) if after else tensor.detach()
    value.requires_grad = tensor.requires_grad
    return value


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warns if none of the inputs requires grad."""
    if not any(i.requires_grad for i in inputs if isinstance(i, Tensor)):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None",
            stacklevel=2,
        )


class CheckpointFunction(Function):
    """Re-entrant checkpointing: the backward runs a backward of its own."""

    @staticmethod
    def forward(
        ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any
    ) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.settings = forward_settings(infer_device_type(*args))
        ctx.random = snapshot() if preserve_rng_state else None
        ctx.inputs = [None if isinstance(a, Tensor) else a for a in args]
        ctx.tensor_indices = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.tensor_indices))
        ctx.size = Size()
        with no_grad(), ctx.size:
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        walk = walking.stack[-1] if walking.stack else None
        if walk is not None and (walk.narrow or not walk.accumulate):
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with "
                ".grad() or passing an `inputs` parameter to .backward(). To resolve "
                "this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        ctx.size.make_room()
        inputs = list(ctx.inputs)
        after = [a for a in args if isinstance(a, Tensor)]
        for i, tensor in zip(ctx.tensor_indices, ctx.saved_tensors, strict=True):
            inputs[i] = _detached(tensor, after)
        with _random_as(ctx.random), ctx.settings(), enable_grad():
            outputs = ctx.run_function(*inputs)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        roots = [
            (out, grad)
            for out, grad in zip(outputs, args, strict=True)
            if isinstance(out, Tensor) and out.requires_grad
        ]
        if not roots:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not "
                "necessary"
            )
        roots = [
            (out._v, None if grad is None else out._values_of(grad))
            if isinstance(out, Composed)
            else (out, grad)
            for out, grad in roots
        ]
        backward([out for out, _ in roots], [grad for _, grad in roots])
        grads = [i.grad if isinstance(i, Tensor) else None for i in inputs]
        recording = local.rec.recording
        for tensor in inputs:
            # A recording holds its leaves; of these nobody knows any more.
            if isinstance(tensor, Tensor):
                own = tensor._v if isinstance(tensor, Composed) else tensor
                recording.entered.pop(own._slot, None)
        return (None, None, *grads)


_DEFAULT_DETERMINISM_MODE = "default"
_allowed_determinism_checks_to_fns = DETERMINISM_CHECKS


def _get_autocast_kwargs(device_type: str = "cuda") -> tuple[Any, dict[str, Any]]:
    """How `autocast` is set on a type of devices, None without it, and on the CPU."""

    def settings(kind: str) -> dict[str, Any]:
        return {
            "enabled": torchshim.is_autocast_enabled(kind),
            "dtype": torchshim.get_autocast_dtype(kind),
            "cache_enabled": torchshim.is_autocast_cache_enabled(),
        }

    there = is_autocast_available(device_type)
    return settings(device_type) if there else None, settings("cpu")


def _get_device_module(device: str = "cuda") -> Any:
    """The module of a type of devices: `torch.cuda`."""
    if device == "meta":
        return torchshim.device("meta")
    return getattr(torchshim, device)


def _policy_from_bool(b: bool) -> CheckpointPolicy:
    kept, dropped = CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_RECOMPUTE
    return kept if b else dropped


_infer_device_type = infer_device_type


@contextlib.contextmanager
def _random_as(states: Any) -> Iterator[None]:
    """The generators as they were in the forward; afterwards as they are now."""
    if states is None:
        yield
        return
    now = snapshot()
    restore(states)
    try:
        yield
    finally:
        restore(now)


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Calls `function`; its backward calls it again instead of keeping what it made.

    `preserve_rng_state=True` draws the same random numbers the second time. With
    `use_reentrant=False`: `context_fn` gives the contexts of the two runs;
    `determinism_check` "default" compares shapes, dtypes and devices, "none" nothing;
    `debug` lists the operators of both in an error; `early_stop` ends the second run
    when nothing more is needed.
    Raises ValueError for arguments that do not go together, CheckpointError in the
    backward if the second run differs.
    https://docs.pytorch.org/docs/2.13/checkpoint.html#torch.utils.checkpoint.checkpoint

    >>> import torchshim as torch
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> y = checkpoint(lambda x: (x * x).exp(), x, use_reentrant=False)
    >>> y.backward()
    >>> x.grad
    tensor(218.3926)
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed "
            "explicitly. Starting in PyTorch 2.9, calling checkpoint without "
            "use_reentrant will raise an exception. use_reentrant=False is "
            "recommended, but if you need to preserve the current default behavior, "
            "you can pass use_reentrant=True. Refer to docs for more details on the "
            "differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs and use_reentrant:
        raise ValueError(
            "Unexpected keyword arguments: " + ",".join(arg for arg in kwargs)
        )
    if use_reentrant:
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when "
                "use_reentrant=False."
            )
        return CheckpointFunction.apply(function, preserve, *args)
    return _without_reentry(
        function,
        args,
        kwargs,
        preserve,
        context_fn,
        determinism_check,
        debug,
        early_stop,
    )


def _without_reentry(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    preserve: bool,
    context_fn: Callable[[], tuple[Any, Any]],
    determinism_check: str,
    debug: bool,
    early_stop: bool,
) -> Any:
    """`checkpoint` by saved-tensor hooks: the second run makes what they ask for."""
    if _Overrides.debug is not None:
        debug = _Overrides.debug
    if _Overrides.early_stop is not None:
        early_stop = _Overrides.early_stop
    log: frames.DebugLog | None = None
    if debug:
        if context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        log = frames.DebugLog()
        context_fn = log.contexts
    if determinism_check not in frames.DETERMINISM_CHECKS:
        raise ValueError(
            "determinism_check should be one of "
            f"{list(frames.DETERMINISM_CHECKS)}, but got {determinism_check}"
        )
    settings = forward_settings(infer_device_type(*args))
    forward_context, recompute_context = context_fn()
    random = snapshot() if preserve else None

    def recompute(*inputs: Any) -> None:
        given = {
            name: frames.as_input(value, value.requires_grad)
            if isinstance(value, Tensor)
            else value
            for name, value in kwargs.items()
        }
        with _random_as(random), settings(), recompute_context:
            function(*inputs, **given)

    if not local.rec.grad:
        return function(*args, **kwargs)
    frame = CheckpointFrame(
        recompute, early_stop, frames.DETERMINISM_CHECKS[determinism_check], log
    )
    frame.save_inputs(args)
    result, returned = None, False
    with frame.size, checkpoint_hooks(frame), forward_context:
        result, returned = function(*args, **kwargs), True
    if not returned:
        raise RuntimeError(
            "torch.utils.checkpoint: the forward context provided by context_fn "
            "suppressed an exception raised during the checkpointed forward. This is "
            "not supported because checkpoint cannot return a value for a failed "
            "forward."
        )
    frame.forward_completed = True
    return result


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Calls modules or functions one after the other, all but the last segment
    checkpointed.

    Raises ValueError for keywords other than `preserve_rng_state`.
    https://docs.pytorch.org/docs/2.13/checkpoint.html#torch.utils.checkpoint.checkpoint_sequential
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter "
            "should be passed explicitly. In version 2.9 we will raise an exception if "
            "use_reentrant is not passed. use_reentrant=False is recommended, but if "
            "you need to preserve the current default behavior, you can pass "
            "use_reentrant=True. Refer to docs for more details on the differences "
            "between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError(
            "Unexpected keyword arguments: " + ",".join(arg for arg in kwargs)
        )

    def segment(start: int, end: int) -> Callable[[Any], Any]:
        def forward(input: Any) -> Any:
            for each in functions[start:end]:
                input = each(input)
            return input

        return forward

    if isinstance(functions, Sequential):
        functions = list(functions.children())
    size = len(functions) // segments
    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(
            segment(start, end),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )
    return segment(end, len(functions))(input)
