"""PyTorch's values and functions as `packing` tells of them. This needs torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode, resolve_name

from compat_suite.closeness import TOLERANCES
from compat_suite.operators.comparison import SLACK, error_of
from compat_suite.operators.translation import can_share, flat_memory, is_whole
from compat_suite.operators.values import distinct, dtype_name, tensors, to_numpy
from compat_suite.recorded.packing import Pack, Untold


class Telling:
    """The values of one case; `given` are the tensors that a program refers to."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack
        self._seen: list[torch.Tensor] = []

    def __call__(self, value: Any, given: dict[int, int] | None = None) -> Any:
        """A value as JSON; raises `Untold`."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, torch.Tensor):
            if given is not None:
                if id(value) not in given:
                    raise Untold("a tensor that a function keeps")
                return {"$": "given", "v": given[id(value)]}
            return self._tensor(value)
        if type(value) is list:
            return [self(item, given) for item in value]
        if isinstance(value, dict):
            return {
                "$": "dict",
                "v": [[self(k), self(v, given)] for k, v in value.items()],
            }
        return self._other(value, given)

    def _other(self, value: Any, given: dict[int, int] | None) -> Any:
        if isinstance(value, torch.Size):
            return {"$": "size", "v": list(value)}
        if isinstance(value, tuple):
            told = {"$": "tuple", "v": [self(item, given) for item in value]}
            if names := list(getattr(type(value), "__match_args__", ())):
                told["names"] = names
            elif type(value) is not tuple:
                raise Untold(type(value).__name__)
            return told
        if isinstance(value, complex):
            return {"$": "complex", "v": [value.real, value.imag]}
        if isinstance(value, slice):
            parts = [value.start, value.stop, value.step]
            return {"$": "slice", "v": [self(part, given) for part in parts]}
        if value is Ellipsis:
            return {"$": "..."}
        if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
            return {"$": "constant", "v": [str(value).removeprefix("torch.")]}
        if isinstance(value, torch.device):
            return {"$": "device", "v": [str(value)]}
        if isinstance(value, torch.Generator):
            return {"$": "generator", "v": [value.initial_seed()]}
        if isinstance(value, Exception):
            return {"$": "exception", "v": [type(value).__name__, str(value)[:300]]}
        if isinstance(value, np.generic):
            return self(value.item())
        raise Untold(f"{type(value).__name__} as an argument")

    def _tensor(self, value: torch.Tensor) -> dict[str, Any]:
        which = next((i for i, t in enumerate(self._seen) if t is value), None)
        if which is None:
            which = len(self._seen)
            self._seen.append(value)
        if value.layout is not torch.strided:
            raise Untold(f"tensors of layout {value.layout}")
        plain = value.detach().resolve_conj().resolve_neg()
        layout: list[Any] = [list(plain.shape)]
        if not is_whole(plain):
            layout += [list(plain.stride()), plain.storage_offset()]
            plain = flat_memory(plain)
        row = self._pack.row(dtype_name(value), to_numpy(plain), layout)
        told = {"$": "tensor", "row": row, "is": which}
        if len(layout) > 1 and can_share(value):
            place = value.untyped_storage().data_ptr()
            shares = (t.untyped_storage().data_ptr() == place for t in self._seen)
            told["memory"] = list(shares).index(True)
        return told | ({"grad": True} if value.requires_grad else {})

    def result(self, value: Any, wide: Any) -> Any:
        """A result, its tensors with their distance from those in higher precision."""
        if isinstance(value, torch.Tensor):
            array = to_numpy(value)
            number = self._pack.row(dtype_name(value), array, [list(value.shape)])
            told = {"$": "tensor", "row": number}
            tolerance = TOLERANCES.get(dtype_name(value))
            if tolerance is not None and isinstance(wide, torch.Tensor):
                if wide.shape == value.shape:
                    error = error_of(array, to_numpy(wide))
                    if error * SLACK > tolerance[1]:
                        told["error"] = float(f"{error:.2g}")
            return told
        if type(value) is dict:
            others = wide if isinstance(wide, dict) else {}
            items = [[k, self.result(v, others.get(k))] for k, v in value.items()]
            return {"$": "dict", "v": items}
        if type(value) is list or isinstance(value, tuple):
            others = list(wide) if isinstance(wide, list | tuple) else []
            others += [None] * (len(value) - len(others))
            items = [self.result(v, w) for v, w in zip(value, others, strict=False)]
            if type(value) is list:
                return items
            return self(value, {id(t): 0 for t in tensors(value)}) | {"v": items}
        return self(value)


class Traced:
    """A function of the database, told by the calls that it makes."""

    def __init__(self, function: Callable[..., Any], telling: Telling) -> None:
        self._function = function
        self._telling = telling
        self.told: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls it and keeps which operators it called."""
        trace = _Trace(distinct(tensors([args, kwargs])), self._telling)
        with trace:
            result = self._function(*args, **kwargs)
        if trace.untold is not None:
            raise trace.untold
        told = self._telling(result, trace.numbers)
        self.told = {"calls": trace.calls, "result": told}
        return result


class _Trace(TorchFunctionMode):
    def __init__(self, given: list[torch.Tensor], telling: Telling) -> None:
        super().__init__()
        self._kept = list(given)  # so that no `id` is used again
        self._telling = telling
        self.numbers = {id(t): i for i, t in enumerate(given)}
        self.calls: list[Any] = []
        self.untold: Untold | None = None

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        found = tensors(result)
        if found:
            try:
                told = [self._telling(list(args), self.numbers)]
                told.append(self._telling(kwargs, self.numbers))
                self.calls.append([_name(func), *told])
            except Untold as error:
                self.untold = error
        for each in found:
            self.numbers.setdefault(id(each), len(self._kept))
            self._kept.append(each)
        return result


def _name(function: Any) -> str:
    if isinstance(function, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return f"torch.ops.{function}"
    name = resolve_name(function)
    if name is None:
        name = f"{function.__module__}.{function.__name__}"
    return name.replace("torch._C.TensorBase", "torch.Tensor")


def named(function: Any, entry: Any) -> str | None:
    """The name under which torchshim has a function; None where it must be traced."""
    if str(getattr(function, "__module__", "")) == "_operator":
        return f"operator.{function.__name__}"
    if isinstance(function, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return f"ops.{function}"
    origin = str(getattr(function, "__module__", None))
    if origin.startswith("torch.testing") or not hasattr(function, "__name__"):
        return None
    for each in [entry, *entry.aliases]:
        if function is each.op:
            return each.name.removeprefix("torch.")
    if getattr(torch.Tensor, function.__name__, None) is function:
        return f"Tensor.{function.__name__}"
    return None


__all__ = ["Telling", "Traced", "named"]
