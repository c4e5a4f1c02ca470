"""Loss scaling, which keeps small gradients of 16-bit types from vanishing.

https://docs.pytorch.org/docs/2.13/amp.html#gradient-scaling
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

import torchshim
from torchshim import _warnings as warnings
from torchshim._core import dtypes
from torchshim._core.device import device_count
from torchshim._core.op import REGISTRY
from torchshim._core.record import local
from torchshim._functions.sparse_tensor import terms_of
from torchshim._tensor import Tensor

__all__ = ["GradScaler", "OptState"]


def _amp_foreach_non_finite_check_and_unscale_(
    grads: Iterable[Any], found_inf: Any, inv_scale: Any
) -> None:
    """Multiplies the gradients by `inv_scale` in place; notes what is not finite."""
    given = tuple(grads)
    if not given:
        return
    _check_factors("inv_scale", inv_scale, "found_inf", found_inf)
    kernel = "_amp_foreach_non_finite_check_and_unscale_cpu"
    for grad in given:
        if not grad.is_floating_point():
            raise NotImplementedError(
                f"\"{kernel}\" not implemented for '{grad.dtype.scalar_name}'"
            )
    _mutate(
        "unscale_gradients",
        [given, (found_inf,), (inv_scale,)],
        [*given, found_inf],
    )


def _check_factors(*named: Any) -> None:
    """PyTorch's errors for tensors that stand for one number, by name: their sizes
    first, then their dtypes."""
    pairs = list(zip(named[::2], named[1::2], strict=True))
    for name, value in pairs:
        if value.numel() != 1:
            raise RuntimeError(f"{name} must be a 1-element tensor.")
    for name, value in pairs:
        want = "int" if name == "growth_tracker" else "float"
        if value.dtype is not (dtypes.int32 if want == "int" else dtypes.float32):
            article = "an" if want == "int" else "a"
            raise RuntimeError(f"{name} must be {article} {want} tensor.")


def _amp_update_scale_(
    scale: Any,
    growth_tracker: Any,
    found_inf: Any,
    growth_factor: float,
    backoff_factor: float,
    growth_interval: int,
) -> Any:
    """Lowers the scale after an overflow, raises it after long without one."""
    given = ("growth_tracker", growth_tracker, "current_scale", scale)
    _check_factors(*given, "found_inf", found_inf)
    _mutate(
        "update_gradient_scale",
        [
            (scale,),
            (growth_tracker,),
            (found_inf,),
            float(growth_factor),
            float(backoff_factor),
            int(growth_interval),
        ],
        [scale, growth_tracker],
    )
    return scale


def _mutate(name: str, args: list[Any], targets: list[Any]) -> None:
    with torchshim.no_grad():
        local.rec.mutate(REGISTRY[name], args, targets)


class OptState(Enum):
    """How far an optimizer is in an iteration."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class _EachDevice:
    """Copies of a tensor, one for each device that asks."""

    def __init__(self, master: Any) -> None:
        self.master = master
        self._copies: dict[Any, Any] = {}

    def get(self, device: Any) -> Any:
        found = self._copies.get(device)
        if found is None:
            found = self._copies[device] = self.master.to(
                device=device, non_blocking=True, copy=True
            )
        return found


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Scales losses, unscales gradients, and skips steps whose gradients overflowed.

    Follows https://docs.pytorch.org/docs/2.13/amp.html#torch.amp.GradScaler. `step`
    reads whether anything overflowed, as PyTorch does.

    >>> import torchshim as torch
    >>> scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    >>> scaler.scale(torch.ones(2))
    tensor([4., 4.])
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if device == "cuda" and enabled and not device_count("cuda"):
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  "
                "Disabling.",
                stacklevel=2,
            )
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale: Any = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Any = None
        self._per_optimizer_states: defaultdict[int, dict[str, Any]] = defaultdict(
            _refresh_per_optimizer_state
        )

    def _check_scale_growth_tracker(self, funcname: str) -> tuple[Any, Any]:
        for name in ("_scale", "_growth_tracker"):
            if getattr(self, name) is None:
                raise AssertionError(
                    f"Attempted {funcname} but {name} is None.  This may indicate your "
                    "script did not use scaler.scale(loss or outputs) earlier in the "
                    "iteration."
                )
        return self._scale, self._growth_tracker

    def _lazy_init_scale_growth_tracker(self, dev: Any) -> None:
        if self._growth_tracker is not None:
            raise AssertionError("_growth_tracker initialized before _scale")
        self._scale = torchshim.full(
            (), self._init_scale, dtype=dtypes.float32, device=dev
        )
        self._growth_tracker = torchshim.full(
            (), self._init_growth_tracker, dtype=dtypes.int32, device=dev
        )

    def scale(self, outputs: Any) -> Any:
        """A tensor, or tensors at any depth of sequences, times the scale."""
        if not self._enabled:
            return outputs
        return self._scaled(outputs, [])

    def _scaled(self, outputs: Any, scales: list[_EachDevice]) -> Any:
        if isinstance(outputs, Tensor):
            if not scales:
                if self._scale is None:
                    self._lazy_init_scale_growth_tracker(outputs.device)
                scales.append(_EachDevice(self._scale))
            scale: Any = self._scale
            if outputs.device == scale.device:
                return outputs * scale
            return outputs * scales[0].get(outputs.device)
        if isinstance(outputs, Iterable):
            made = (self._scaled(value, scales) for value in outputs)
            return type(outputs)(made) if isinstance(outputs, (list, tuple)) else made
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Any, found_inf: Any, allow_fp16: bool
    ) -> dict[Any, Any]:
        inverses, found = _EachDevice(inv_scale), _EachDevice(found_inf)
        grads: defaultdict[Any, list[Any]] = defaultdict(list)
        for group in optimizer.param_groups:
            for param in group["params"]:
                if not isinstance(param, Tensor):
                    raise AssertionError(
                        f"expected param to be torch.Tensor, got {type(param).__name__}"
                    )
                grad: Any = param.grad
                if grad is None:
                    continue
                if not allow_fp16 and grad.dtype is dtypes.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                if grad.is_sparse:
                    if grad.dtype is dtypes.float16:  # its sums are to be looked at
                        grad = param.grad = grad.coalesce()
                    grads[grad.device] += [values for _, values, _ in terms_of(grad)[0]]
                else:
                    grads[grad.device].append(grad)
        for device, tensors in grads.items():
            _amp_foreach_non_finite_check_and_unscale_(
                tensors, found.get(device), inverses.get(device)
            )
        return found._copies

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of an optimizer's parameters by the scale, in place.

        Raises RuntimeError for a second time between two updates.
        """
        if not self._enabled:
            return
        self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last "
                "update()."
            )
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = self._scale.double().reciprocal().float()
        state["found_inf_per_device"] = self._unscale_grads_(
            optimizer, inverse, self._none_found(), False
        )
        state["stage"] = OptState.UNSCALED

    def _none_found(self) -> Any:
        return torchshim.full((), 0.0, dtype=dtypes.float32, device=self._scale.device)

    def _maybe_opt_step(
        self, optimizer: Any, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        found = optimizer_state["found_inf_per_device"].values()
        if sum(v.item() for v in found):
            return None
        return optimizer.step(*args, **kwargs)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step(*args, **kwargs)`, unless a gradient is infinite or NaN.

        The gradients are unscaled first where `unscale_` was not called. Raises
        RuntimeError for a second time between two updates, and for a closure.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError(
                "Closure use is not currently supported if GradScaler is enabled."
            )
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError(
                "step() has already been called since the last update()."
            )
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._step_that_scales(optimizer, state, args, kwargs)
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _step_that_scales(
        self, optimizer: Any, state: dict[str, Any], args: Any, kwargs: Any
    ) -> Any:
        """The step of an optimizer that handles scale and overflow itself."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to "
                "the passed optimizer. In the near future GradScaler registers "
                "`grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer "
                "and let the optimizer use them directly.",
                FutureWarning,
                stacklevel=3,
            )
            result = optimizer.step(*args, **kwargs, grad_scaler=self)
            state["stage"] = OptState.STEPPED
            return result
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        scale = self._get_scale_async()
        if scale is None:
            raise AssertionError("_get_scale_async returned None")
        optimizer.grad_scale = (
            getattr(optimizer, "grad_scale", None)
            if state["stage"] is OptState.UNSCALED
            else scale * getattr(optimizer, "grad_scale", 1)
        )
        optimizer.found_inf = sum(
            found.to(scale.device, non_blocking=True)
            for found in state["found_inf_per_device"].values()
        )
        result = optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        del optimizer.grad_scale
        del optimizer.found_inf
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapts the scale to what the steps of this iteration found, or sets it."""
        if not self._enabled:
            return
        scale, growth_tracker = self._check_scale_growth_tracker("update")
        if new_scale is not None:
            if isinstance(new_scale, float):
                self._scale.fill_(new_scale)
            else:
                given: Any = new_scale
                if (
                    given.device.type != self._device
                    or given.numel() != 1
                    or given.requires_grad
                ):
                    raise AssertionError(
                        "new_scale should be a float or a 1-element "
                        "torch.cuda.FloatTensor or torch.FloatTensor with "
                        "requires_grad=False."
                    )
                self._scale.copy_(given)
        else:
            found = [
                value.to(device=scale.device, non_blocking=True)
                for state in self._per_optimizer_states.values()
                for value in state["found_inf_per_device"].values()
            ]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            _amp_update_scale_(
                scale,
                growth_tracker,
                sum(found[1:], found[0]),
                self._growth_factor,
                self._backoff_factor,
                self._growth_interval,
            )
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _get_scale_async(self) -> Any:
        return self._scale

    def get_scale(self) -> float:
        """The scale, which is read; 1.0 if scaling is off."""
        if not self._enabled:
            return 1.0
        scale = self._get_scale_async()
        return self._init_scale if scale is None else scale.item()

    def get_growth_factor(self) -> float:
        """What the scale is raised by."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets what the scale is raised by."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is lowered by."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets what the scale is lowered by."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many steps without overflow the scale is raised."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets after how many steps without overflow the scale is raised."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else tracker.item()

    def is_enabled(self) -> bool:
        """Whether this scaler does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The scale and its settings as numbers; empty if scaling is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` gave. RuntimeError if that is empty."""
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a "
                "disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an "
                    "iteration, or at the end after scaler.update()."
                )
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = None
            state["_growth_tracker"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Any]:
        self._check_scale_growth_tracker("_check_inf_per_device")
        found = self._unscale_grads_(
            optimizer,
            torchshim.full((), 1.0, dtype=dtypes.float32, device=self._scale.device),
            self._none_found(),
            True,
        )
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Any]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
