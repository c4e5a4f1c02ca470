"""Observers that note no range."""

from __future__ import annotations

from typing import Any

import torchshim as torch
from torchshim import _warnings as warnings
from torchshim.ao.quantization._observer_base import _HOME, EPS, ObserverBase

_GAP = " " * 20


class FixedQParamsObserver(ObserverBase):
    """Notes nothing: the scale and zero point are given.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.observer.FixedQParamsObserver.html
    """

    __module__ = _HOME

    scale: Any
    zero_point: Any

    def __init__(
        self,
        scale: float,
        zero_point: int,
        dtype: Any = torch.quint8,
        qscheme: Any = torch.per_tensor_affine,
        quant_min: int = 0,
        quant_max: int = 255,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        if is_dynamic:
            raise NotImplementedError(
                "FixedQParamsObserver doesn't support dynamic quantization"
            )
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.quant_min = quant_min
        self.quant_max = quant_max
        self.register_buffer("scale", torch.tensor([scale], dtype=torch.float))
        self.register_buffer("zero_point", torch.tensor([zero_point], dtype=torch.int))
        self.qscheme = qscheme

    def forward(self, X: Any) -> Any:
        return X

    def calculate_qparams(self) -> tuple[Any, Any]:
        """The scale and zero point that were given."""
        return self.scale, self.zero_point


class _Unaware(ObserverBase):
    """Hands on what it gets."""

    __module__ = _HOME
    _name: str

    def forward(self, x: Any) -> Any:
        return x

    def calculate_qparams(self) -> Any:
        """Refused: nothing was noted."""
        raise Exception(f"calculate_qparams should not be called for {self._name}")


class PlaceholderObserver(_Unaware):
    """Notes nothing but the settings, for quantization at each call or half types.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.observer.PlaceholderObserver.html
    """

    __module__ = _HOME
    _name = "PlaceholderObserver"

    def __init__(
        self,
        dtype: Any = torch.float32,
        custom_op_name: str = "",
        compute_dtype: Any = None,
        quant_min: int | None = None,
        quant_max: int | None = None,
        qscheme: Any = None,
        eps: float | None = None,
        is_dynamic: bool = False,
    ) -> None:
        super().__init__(dtype=dtype, is_dynamic=is_dynamic)
        self.qscheme = torch.per_tensor_affine if qscheme is None else qscheme
        self.quant_min = quant_min
        self.quant_max = quant_max
        self.eps = EPS if eps is None else eps
        self.custom_op = custom_op_name
        if compute_dtype:
            warnings.warn(
                f"Please use `is_dynamic` instead of `compute_dtype`. {_GAP}"
                f"`compute_dtype` will be deprecated in a future release {_GAP}"
                "of PyTorch.",
                stacklevel=2,
            )

    def extra_repr(self) -> str:
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"


class RecordingObserver(_Unaware):
    """Keeps copies of all it gets.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.observer.RecordingObserver.html

    >>> import torchshim as torch
    >>> observer = torch.ao.quantization.RecordingObserver()
    >>> x = observer(torch.ones(1)), observer(torch.zeros(1))
    >>> observer.get_tensor_value()
    [tensor([1.]), tensor([0.])]
    """

    __module__ = _HOME
    _name = "RecordingObserver"

    def __init__(self, dtype: Any = torch.quint8) -> None:
        super().__init__(dtype=dtype, is_dynamic=False)
        self.tensor_val: list[Any] = []

    def forward(self, x: Any) -> Any:
        self.tensor_val.append(x.clone())
        return x

    def get_tensor_value(self) -> list[Any]:
        """The copies."""
        return self.tensor_val


class NoopObserver(_Unaware):
    """Notes nothing, for half types.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.observer.NoopObserver.html
    """

    __module__ = _HOME
    _name = "NoopObserver"

    def __init__(self, dtype: Any = torch.float16, custom_op_name: str = "") -> None:
        super().__init__(dtype=dtype, is_dynamic=False)
        self.custom_op = custom_op_name


class ReuseInputObserver(_Unaware):
    """Stands for the observer of the input, of operators that move elements."""

    __module__ = _HOME
    _name = "ReuseInputObserver"

    def __init__(self) -> None:
        super().__init__(torch.quint8, is_dynamic=False)
