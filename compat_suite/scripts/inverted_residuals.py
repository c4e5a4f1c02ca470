# compat: rtol=1e-3 atol=1e-5 seconds=11 (four steps of training)
"""A mobile network as torchvision writes it: marks for TorchScript and FX included."""

from collections.abc import Callable
from functools import partial

import torch
import torch.fx
import torch.nn.functional as F
from torch import Tensor, nn


def stochastic_depth(
    input: Tensor, p: float, mode: str, training: bool = True
) -> Tensor:
    if mode not in ["batch", "row"]:
        raise ValueError(f"mode has to be either 'batch' or 'row', but got {mode}")
    if not training or p == 0.0:
        return input
    survival_rate = 1.0 - p
    if mode == "row":
        size = [input.shape[0]] + [1] * (input.ndim - 1)
    else:
        size = [1] * input.ndim
    noise = torch.empty(size, dtype=input.dtype, device=input.device)
    noise = noise.bernoulli_(survival_rate)
    if survival_rate > 0.0:
        noise.div_(survival_rate)
    return input * noise


torch.fx.wrap("stochastic_depth")


def make_divisible(v: float, divisor: int, min_value: int | None = None) -> int:
    if min_value is None:
        min_value = divisor
    new_v = max(min_value, int(v + divisor / 2) // divisor * divisor)
    if new_v < 0.9 * v:
        new_v += divisor
    return new_v


class ConvNormActivation(nn.Sequential):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int = 3,
        stride: int = 1,
        groups: int = 1,
        norm_layer: Callable[..., nn.Module] = nn.BatchNorm2d,
        activation_layer: Callable[..., nn.Module] | None = nn.Hardswish,
    ) -> None:
        torch._C._log_api_usage_once(f"{type(self).__module__}.{type(self).__name__}")
        padding = (kernel_size - 1) // 2
        conv = nn.Conv2d(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            groups=groups,
            bias=False,
        )
        layers: list[nn.Module] = [conv, norm_layer(out_channels)]
        if activation_layer is not None:
            layers.append(activation_layer(inplace=True))
        super().__init__(*layers)
        self.out_channels = out_channels


class SqueezeExcitation(nn.Module):
    def __init__(self, input_channels: int, squeeze_channels: int) -> None:
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(input_channels, squeeze_channels, 1)
        self.fc2 = nn.Conv2d(squeeze_channels, input_channels, 1)

    def forward(self, input: Tensor) -> Tensor:
        scale = F.relu(self.fc1(self.avgpool(input)))
        return F.hardsigmoid(self.fc2(scale)) * input


class InvertedResidual(nn.Module):
    def __init__(
        self, inp: int, oup: int, stride: int, expand_ratio: float, p: float
    ) -> None:
        super().__init__()
        torch._assert(stride in [1, 2], f"stride should be 1 or 2 instead of {stride}")
        hidden_dim = make_divisible(inp * expand_ratio, 4)
        self.use_res_connect = stride == 1 and inp == oup
        self.p = p
        norm_layer = partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)
        block = partial(ConvNormActivation, norm_layer=norm_layer)
        self.conv = nn.Sequential(
            block(inp, hidden_dim, 1),
            block(hidden_dim, hidden_dim, 3, stride, groups=hidden_dim),
            SqueezeExcitation(hidden_dim, make_divisible(hidden_dim // 4, 4)),
            block(hidden_dim, oup, 1, activation_layer=None),
        )

    @torch.jit._overload_method
    def forward(self, input: list[Tensor]) -> Tensor:
        pass

    @torch.jit._overload_method
    def forward(self, input: Tensor) -> Tensor:  # noqa: F811
        pass

    def forward(self, input: Tensor) -> Tensor:  # noqa: F811
        x = input if isinstance(input, Tensor) else torch.cat(input, 1)
        if isinstance(x, torch.fx.Proxy):
            raise TypeError("nothing is traced here")
        result = self.conv(x)
        if self.use_res_connect:
            result = stochastic_depth(result, self.p, "row", self.training)
            result += x
        return result


class MobileNet(nn.Module):
    def __init__(self, num_classes: int = 4) -> None:
        super().__init__()
        self.features = nn.Sequential(
            ConvNormActivation(3, 8, stride=2),
            InvertedResidual(8, 12, 2, 2, 0.0),
            InvertedResidual(12, 12, 1, 2, 0.3),
            ConvNormActivation(12, 24, 1),
        )
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(24, num_classes))
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out")
                if m.bias is not None:
                    nn.init.zeros_(m.bias)
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.ones_(m.weight)
                nn.init.zeros_(m.bias)
            elif isinstance(m, nn.Linear):
                nn.init._no_grad_trunc_normal_(m.weight, 0.0, 0.02, -0.04, 0.04)
                nn.init.zeros_(m.bias)

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        x = F.adaptive_avg_pool2d(x, (1, 1))
        return self.classifier(torch.flatten(x, 1))


def main() -> None:
    torch.manual_seed(0)
    model = MobileNet()
    print(model.features[2])
    optimizer = torch.optim.RMSprop(
        model.parameters(), lr=0.002, momentum=0.9, weight_decay=1e-5, alpha=0.9
    )
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.97)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    image, target = torch.rand(8, 3, 24, 24), torch.arange(8) % 4
    for step in range(4):
        loss = criterion(model(image), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        print(f"{step} {loss.item():.4f} {scheduler.get_last_lr()[0]:.6f}")
    try:
        InvertedResidual(8, 8, 3, 1, 0.0)
    except AssertionError as error:
        print(error)
    model.eval()
    with torch.inference_mode():
        print(
            model(image).softmax(1).sum(),
            model.features[2]([image.new_ones(1, 6, 4, 4)] * 2).shape,
        )


if __name__ == "__main__":
    main()
