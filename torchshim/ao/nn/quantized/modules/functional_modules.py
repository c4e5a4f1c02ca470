"""Functions as layers, so that observers can be attached to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import torchshim
from torchshim import nn
from torchshim.ao.nn.quantized.modules.utils import put_scheme, take_scheme
from torchshim.nn import functional as F
from torchshim.ops import quantized as ops

__all__ = ["FXFloatFunctional", "FloatFunctional", "QFunctional"]


class FloatFunctional(nn.Module):
    """Functions of floating point, whose results an observer sees.

    >>> import torchshim as torch
    >>> f = FloatFunctional()
    >>> f.add(torch.tensor(3.0), torch.tensor(4.0))
    tensor(7.)
    """

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = nn.Identity()

    def forward(self, x: Any) -> NoReturn:
        raise RuntimeError(
            "FloatFunctional is not intended to use the 'forward'. Please use the "
            "underlying operation"
        )

    def add(self, x: Any, y: Any) -> Any:
        """`x + y`."""
        return self.activation_post_process(torchshim.add(x, y))

    def add_scalar(self, x: Any, y: float) -> Any:
        """`x + y`, unobserved."""
        return torchshim.add(x, y)

    def mul(self, x: Any, y: Any) -> Any:
        """`x * y`."""
        return self.activation_post_process(torchshim.mul(x, y))

    def mul_scalar(self, x: Any, y: float) -> Any:
        """`x * y`, unobserved."""
        return torchshim.mul(x, y)

    def cat(self, x: Sequence[Any], dim: int = 0) -> Any:
        """`torch.cat(x, dim)`."""
        return self.activation_post_process(torchshim.cat(x, dim=dim))

    def add_relu(self, x: Any, y: Any) -> Any:
        """`relu(x + y)`."""
        return self.activation_post_process(F.relu(torchshim.add(x, y)))

    def matmul(self, x: Any, y: Any) -> Any:
        """`x @ y`."""
        return self.activation_post_process(torchshim.matmul(x, y))


class FXFloatFunctional(nn.Module):
    """As `FloatFunctional`, where a graph has the observers."""

    def forward(self, x: Any) -> NoReturn:
        raise RuntimeError(
            "FloatFunctional is not intended to use the 'forward'. Please use the "
            "underlying operation"
        )

    def add(self, x: Any, y: Any) -> Any:
        """`x + y`."""
        return torchshim.add(x, y)

    def add_scalar(self, x: Any, y: float) -> Any:
        """`x + y`."""
        return torchshim.add(x, y)

    def mul(self, x: Any, y: Any) -> Any:
        """`x * y`."""
        return torchshim.mul(x, y)

    def mul_scalar(self, x: Any, y: float) -> Any:
        """`x * y`."""
        return torchshim.mul(x, y)

    def cat(self, x: Sequence[Any], dim: int = 0) -> Any:
        """`torch.cat(x, dim)`."""
        return torchshim.cat(x, dim=dim)

    def add_relu(self, x: Any, y: Any) -> Any:
        """`relu(x + y)`."""
        return F.relu(torchshim.add(x, y))

    def matmul(self, x: Any, y: Any) -> Any:
        """`x @ y`."""
        return torchshim.matmul(x, y)


class QFunctional(nn.Module):
    """Functions of quantized tensors; `scale` and `zero_point` are the results'.

    >>> import torchshim as torch
    >>> q = torch.quantize_per_tensor(torch.tensor([3.0]), 1.0, 0, torch.quint8)
    >>> QFunctional().add(q, q).dequantize()
    tensor([6.])
    """

    def __init__(self) -> None:
        super().__init__()
        self.scale = 1.0
        self.zero_point = 0
        self.activation_post_process = nn.Identity()

    def _save_to_state_dict(
        self, destination: Any, prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        put_scheme(self, destination, prefix)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        take_scheme(self, state_dict, prefix)
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            False,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    def _get_name(self) -> str:
        return "QFunctional"

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}"

    def forward(self, x: Any) -> NoReturn:
        raise RuntimeError(
            "Functional is not intended to use the 'forward'. Please use the "
            "underlying operation"
        )

    @property
    def _scheme(self) -> dict[str, Any]:
        return {"scale": self.scale, "zero_point": self.zero_point}

    def add(self, x: Any, y: Any) -> Any:
        """`x + y`."""
        return self.activation_post_process(ops.add(x, y, **self._scheme))

    def add_scalar(self, x: Any, y: float) -> Any:
        """`x + y`, by a scheme of its own."""
        return ops.add_scalar(x, y)

    def mul(self, x: Any, y: Any) -> Any:
        """`x * y`."""
        return self.activation_post_process(ops.mul(x, y, **self._scheme))

    def mul_scalar(self, x: Any, y: float) -> Any:
        """`x * y`, by a scheme of its own."""
        return ops.mul_scalar(x, y)

    def cat(self, x: Sequence[Any], dim: int = 0) -> Any:
        """`torch.cat(x, dim)`."""
        return self.activation_post_process(ops.cat(x, dim=dim, **self._scheme))

    def add_relu(self, x: Any, y: Any) -> Any:
        """`relu(x + y)`."""
        return self.activation_post_process(ops.add_relu(x, y, **self._scheme))

    def matmul(self, x: Any, y: Any) -> Any:
        """`x @ y`."""
        return ops.matmul(x, y, **self._scheme)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The functions for those of floating point that were observed."""
        if type(mod) is not FloatFunctional:
            raise AssertionError(
                "QFunctional.from_float expects an instance of FloatFunctional, got "
                f"{type(mod).__name__}"
            )
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        made = QFunctional()
        made.scale, made.zero_point = float(scale), int(zero_point)
        return made
