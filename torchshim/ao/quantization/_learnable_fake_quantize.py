"""A module that rounds to multiples of a scale which is trained."""

from __future__ import annotations

from typing import Any

import torchshim as torch
from torchshim import nn
from torchshim.ao.quantization.fake_quantize import FakeQuantizeBase

__all__: list[str] = []


class _LearnableFakeQuantize(FakeQuantizeBase):
    """Rounds to multiples of a scale that an observer finds, and then training.

    `channel_len` scales and zero points are made, or one of each. With
    `use_grad_scaling` their gradients are less, the more elements there are.

    https://arxiv.org/abs/1902.08153
    """

    def __init__(
        self,
        observer: Any,
        quant_min: int = 0,
        quant_max: int = 255,
        scale: float = 1.0,
        zero_point: float = 0.0,
        channel_len: int = -1,
        use_grad_scaling: bool = False,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__()
        if quant_min >= quant_max:
            raise AssertionError("quant_min must be strictly less than quant_max.")
        self.quant_min = quant_min
        self.quant_max = quant_max
        observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)
        self.use_grad_scaling = use_grad_scaling
        if channel_len != -1 and not (isinstance(channel_len, int) and channel_len > 0):
            raise AssertionError("Channel size must be a positive integer.")
        length = 1 if channel_len == -1 else channel_len
        self.scale = nn.Parameter(torch.tensor([scale] * length))
        self.zero_point = nn.Parameter(torch.tensor([zero_point] * length))
        self.activation_post_process = found = observer(**observer_kwargs)
        limits = torch.iinfo(found.dtype)
        if limits.min > quant_min:
            raise AssertionError("quant_min out of bound")
        if quant_max > limits.max:
            raise AssertionError("quant_max out of bound")
        self.dtype = found.dtype
        self.qscheme = found.qscheme
        self.ch_axis = getattr(found, "ch_axis", -1)
        for name, on in (
            ("fake_quant_enabled", 1),
            ("static_enabled", 1),
            ("learning_enabled", 0),
        ):
            self.register_buffer(name, torch.tensor([on], dtype=torch.uint8))
        codes = torch.tensor(quant_max - quant_min + 1).double()
        self.bitwidth = int(torch.log2(codes).item())
        eps = torch.finfo(torch.float32).eps
        self.register_buffer("eps", torch.tensor([eps]))

    def enable_param_learning(self) -> _LearnableFakeQuantize:
        """Has scales trained, and nothing noted."""
        self.toggle_qparam_learning(True).toggle_fake_quant(True)
        return self.toggle_observer_update(False)

    def enable_static_estimate(self) -> None:
        """Has the observer find scales, and elements rounded."""
        self.toggle_qparam_learning(False).toggle_fake_quant(True)
        self.toggle_observer_update(True)

    def enable_static_observation(self) -> None:
        """Has the observer find scales, and elements handed on."""
        self.toggle_qparam_learning(False).toggle_fake_quant(False)
        self.toggle_observer_update(True)

    def toggle_observer_update(self, enabled: bool = True) -> _LearnableFakeQuantize:
        """Has the observer find scales, or not."""
        self.static_enabled[0] = int(enabled)
        return self

    def enable_observer(self, enabled: bool = True) -> None:
        self.toggle_observer_update(enabled)

    def toggle_qparam_learning(self, enabled: bool = True) -> _LearnableFakeQuantize:
        """Has scales trained, or not."""
        self.learning_enabled[0] = int(enabled)
        self.scale.requires_grad = enabled
        self.zero_point.requires_grad = enabled
        return self

    def toggle_fake_quant(self, enabled: bool = True) -> _LearnableFakeQuantize:
        """Has elements rounded, or not."""
        self.fake_quant_enabled[0] = int(enabled)
        return self

    def observe_quant_params(self) -> None:
        """Prints scales and zero points."""
        print(f"_LearnableFakeQuantize Scale: {self.scale.detach()}")
        print(f"_LearnableFakeQuantize Zero Point: {self.zero_point.detach()}")

    def calculate_qparams(self) -> tuple[Any, Any]:
        self.scale.data.clamp_(min=self.eps.item())
        zero = self.zero_point.detach().round().clamp(self.quant_min, self.quant_max)
        return self.scale.detach(), zero.long()

    def forward(self, X: Any) -> Any:
        if self.static_enabled.tolist()[0] == 1:
            self.activation_post_process(X.detach())
            scale, zero = self.activation_post_process.calculate_qparams()
            self.scale.data.copy_(scale.to(self.scale.device))
            self.zero_point.data.copy_(zero.to(self.zero_point.device))
        else:
            self.scale.data.clamp_(min=self.eps.item())
        if self.fake_quant_enabled.tolist()[0] != 1:
            return X
        if self.qscheme in (torch.per_channel_symmetric, torch.per_tensor_symmetric):
            self.zero_point.data.zero_()
        factor = 1.0
        if self.use_grad_scaling:
            factor = 1.0 / (X.numel() * self.quant_max) ** 0.5
        given = X, self.scale, self.zero_point
        limits = self.quant_min, self.quant_max, factor
        if self.qscheme in (torch.per_channel_symmetric, torch.per_channel_affine):
            return torch._fake_quantize_learnable_per_channel_affine(
                *given, self.ch_axis, *limits
            )
        return torch._fake_quantize_learnable_per_tensor_affine(*given, *limits)
