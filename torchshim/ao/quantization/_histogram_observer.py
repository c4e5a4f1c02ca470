"""An observer that keeps a histogram, and cuts off what few elements need."""

from __future__ import annotations

import bisect
from typing import Any

import numpy as np

import torchshim as torch
from torchshim import _warnings as warnings
from torchshim import nn
from torchshim.ao.quantization._observer_base import (
    _HOME,
    EPS,
    UniformQuantizationObserverBase,
)
from torchshim.ao.quantization.utils import is_per_tensor

_STEP = 1e-5  # of the quantiles that are tried


class HistogramObserver(UniformQuantizationObserverBase):
    """Notes a histogram of elements, and chooses the range with the least error.

    From the whole range, ends are moved inwards as long as the squared error of
    rounding and cutting off becomes less; see `NormMinimization` in
    https://github.com/pytorch/pytorch/tree/v1.13.0/caffe2/quantization/server.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.observer.HistogramObserver.html

    >>> import torchshim as torch
    >>> observer = torch.ao.quantization.HistogramObserver(bins=10)
    >>> x = observer(torch.tensor([0.0, 1.0, 1.0, 2.0]))
    >>> observer.histogram
    tensor([1., 0., 0., 0., 0., 2., 0., 0., 0., 1.])
    >>> observer.calculate_qparams()
    (tensor([0.0071]), tensor([0], dtype=torch.int32))
    """

    __module__ = _HOME

    histogram: Any
    min_val: Any
    max_val: Any

    def __init__(
        self,
        bins: int = 2048,
        dtype: Any = torch.quint8,
        qscheme: Any = torch.per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None,
        eps: float = EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        if not is_per_tensor(qscheme):
            raise NotImplementedError(
                "HistogramObserver's qscheme only support torch.per_tensor_symmetric "
                f"{' ' * 20}and torch.per_tensor_affine."
            )
        if is_dynamic:
            raise NotImplementedError(
                "HistogramObserver doesn't support dynamic quantization"
            )
        super().__init__(
            dtype=dtype,
            qscheme=qscheme,
            reduce_range=reduce_range,
            quant_min=quant_min,
            quant_max=quant_max,
            factory_kwargs=factory_kwargs,
            eps=eps,
            is_dynamic=is_dynamic,
            **kwargs,
        )
        made = nn.factory_kwargs(factory_kwargs)
        self.bins = bins
        self.register_buffer("histogram", torch.zeros(bins, **made))
        self.register_buffer("min_val", torch.tensor(float("inf"), **made))
        self.register_buffer("max_val", torch.tensor(float("-inf"), **made))
        self.dst_nbins = 2 ** torch.iinfo(dtype).bits
        self.upsample_rate = 16  # how finely a bin is spread over new bins

    # The search for the range. It reads many values, so NumPy computes it, in single
    # precision as PyTorch's tensors do.

    def _get_norm(self, delta_begin: Any, delta_end: Any, density: Any) -> Any:
        """The integral of x**2, from begin to end, times the density."""
        cubes = (each * each * each for each in (delta_end, delta_begin))
        return density * ((next(cubes) - next(cubes)) / 3)

    def _compute_quantization_error(
        self, next_start_bin: int, next_end_bin: int
    ) -> float:
        """The squared error where codes reach from one bin to another."""
        return self._error(self._counted(), self._width(), next_start_bin, next_end_bin)

    def _counted(self) -> Any:
        return self.histogram.detach().cpu().float().numpy()

    def _width(self) -> float:
        return (self.max_val.item() - self.min_val.item()) / self.bins

    def _error(self, histogram: Any, width: float, start: int, end: int) -> float:
        step = width * (end - start + 1) / self.dst_nbins
        if step == 0.0:
            return 0.0
        single = np.float32
        half = single(step / 2)
        begin = (np.arange(self.bins) - start).astype(single) * single(width)
        ends = begin + single(width)
        last = single(self.dst_nbins - 1)
        code_of_begin = np.clip(np.floor_divide(begin, single(step)), single(0), last)
        code_of_end = np.clip(np.floor_divide(ends, single(step)), single(0), last)
        centre_of_begin = (code_of_begin + single(0.5)) * single(step)
        centre_of_end = code_of_end * single(step) + half
        density = histogram / single(width)
        norm = self._get_norm(begin - centre_of_begin, half, density)
        between = code_of_end - code_of_begin - single(1)
        norm = norm + between * self._get_norm(-half, half, density)
        norm = norm + self._get_norm(-half, ends - centre_of_end, density)
        return float(norm.sum(dtype=single))

    def _non_linear_param_search(self) -> tuple[Any, Any]:
        """The ends of the range with the least error."""
        if self.histogram.size()[0] != self.bins:
            raise AssertionError("bins mismatch")
        histogram, width = self._counted(), self._width()
        total = float(histogram.sum(dtype=np.float32))
        sums = histogram.cumsum(dtype=np.float64).astype(np.float32).tolist()
        low, high = 0.0, 1.0
        start, end = 0, self.bins - 1
        least = float("inf")
        while low < high:
            next_low, next_high = low + _STEP, high - _STEP
            first = float(np.float32(next_low * total))
            last = float(np.float32(next_high * total))
            left = min(max(bisect.bisect_left(sums, first), start), end)
            right = max(min(bisect.bisect_right(sums, last) - 1, end), start)
            next_start, next_end = start, end
            if left - start > end - right:
                next_start, low = left, next_low
            else:
                next_end, high = right, next_high
            if (next_start, next_end) == (start, end):
                continue
            norm = self._error(histogram, width, next_start, next_end)
            if norm > least:
                break
            least, start, end = norm, next_start, next_end
        bin_width = (self.max_val - self.min_val) / self.bins
        new_min = self.min_val + bin_width * start
        return new_min, self.min_val + bin_width * (end + 1)

    # The histogram

    def _upscale_histogram(
        self,
        histogram: Any,
        orig_min: Any,
        orig_max: Any,
        update_min: Any,
        update_max: Any,
    ) -> Any:
        """The counts of a histogram in the bins of a wider range.

        Each bin is cut into sixteen parts, which count where their centre is.
        """
        rate, device = self.upsample_rate, histogram.device
        parts = self.bins * rate
        histogram = histogram.repeat_interleave(rate) / rate
        size = (orig_max - orig_min) / parts
        begins = torch.linspace(orig_min, orig_max, parts + 1, device=orig_min.device)
        centres = begins[:-1].to(device) + 0.5 * size
        bounds = torch.linspace(
            update_min, update_max, self.bins + 1, device=update_min.device
        ).to(device)
        bins = torch.bucketize(centres, bounds, right=True) - 1
        bins = bins.clamp(0, self.bins - 1)
        return torch.bincount(bins, weights=histogram, minlength=self.bins)

    def _combine_histograms(
        self,
        orig_hist: Any,
        orig_min: Any,
        orig_max: Any,
        update_hist: Any,
        update_min: Any,
        update_max: Any,
    ) -> Any:
        """The sum of two histograms, of which the second has the wider range."""
        if update_min == orig_min and update_max == orig_max:
            return orig_hist + update_hist
        if orig_min == orig_max:
            one = torch.histc(orig_min, bins=self.bins, min=update_min, max=update_max)
            return one * torch.sum(orig_hist) + update_hist
        if update_min > orig_min:
            raise AssertionError("update_min must be <= orig_min")
        if update_max < orig_max:
            raise AssertionError("update_max must be >= orig_max")
        return update_hist + self._upscale_histogram(
            orig_hist, orig_min, orig_max, update_min, update_max
        )

    def _keep(self, name: str, value: Any) -> None:
        kept = getattr(self, name)
        kept.detach_().resize_(value.shape)
        kept.copy_(value)

    def reset_histogram(self, x: Any, min_val: Any, max_val: Any) -> None:
        """The histogram of these elements alone, in this range."""
        self._keep("min_val", min_val)
        self._keep("max_val", max_val)
        if min_val.numel() != 1 or max_val.numel() != 1:
            raise AssertionError("histogram min/max values must be scalar.")
        self._keep("histogram", torch.histc(x, self.bins, min=min_val, max=max_val))

    def forward(self, x_orig: Any) -> Any:
        if x_orig.numel() == 0:
            return x_orig
        x = x_orig.detach()
        x_min, x_max = torch.aminmax(x)
        # Infinite elements are cut off by any range.
        if x_min == -torch.inf or x_max == torch.inf:
            warnings.warn(
                "torch.inf detected in input tensor, ignoring input", stacklevel=2
            )
            x = x[x.abs() != torch.inf]
            if x.numel() == 0:
                return x_orig
            x_min, x_max = torch.aminmax(x)
        if self.min_val == float("inf") or self.max_val == float("-inf"):
            self.reset_histogram(x, x_min, x_max)
            return x_orig
        new_min = torch.min(self.min_val, x_min).detach()
        new_max = torch.max(self.max_val, x_max).detach()
        found = torch.histc(x, self.bins, min=new_min, max=new_max)
        found = found.to(self.histogram.device)
        if new_min == self.min_val and new_max == self.max_val:
            self._keep("histogram", self.histogram + found)
            return x_orig
        combined = self._combine_histograms(
            self.histogram, self.min_val, self.max_val, found, new_min, new_max
        )
        self._keep("histogram", combined)
        self._keep("min_val", new_min)
        self._keep("max_val", new_max)
        return x_orig

    def calculate_qparams(self) -> tuple[Any, Any]:
        """The scale and zero point with the least error."""
        if self.min_val == float("inf") and self.max_val == float("-inf"):
            warnings.warn(
                "must run observer before calling calculate_qparams."
                f"{' ' * 36}Returning default scale and zero point ",
                stacklevel=2,
            )
            made = {"device": self.min_val.device.type}
            return torch.tensor([1.0], **made), torch.tensor([0], **made)
        if self.bins != len(self.histogram):
            raise AssertionError(
                "The number of bins in histogram should be equal to the number of bins "
                "supplied while making this observer"
            )
        return self._calculate_qparams(*self._non_linear_param_search())

    def _save_to_state_dict(
        self, destination: Any, prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name in ("min_val", "max_val"):
            destination[prefix + name] = getattr(self, name)

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
        version = local_metadata.get("version", None)
        for name, unseen in (("min_val", float("inf")), ("max_val", float("-inf"))):
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            old = version is None or version < 3
            if old and state_dict[key].shape == torch.Size([0]):
                state_dict[key] = torch.tensor(unseen)
            setattr(self, name, state_dict[key])
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"
