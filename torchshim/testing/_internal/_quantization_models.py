"""Small models that tests of quantization convert."""

from __future__ import annotations

from typing import Any

import torchshim as torch
from torchshim import nn
from torchshim.ao import quantization as ao
from torchshim.ao.nn.quantized import FloatFunctional
from torchshim.ao.quantization import DeQuantStub, QuantStub, QuantWrapper


class _Chain(nn.Module):
    """Modules that follow each other, under their names."""

    def _add(self, **modules: Any) -> None:
        for name, module in modules.items():
            setattr(self, name, module)
        self._steps = [*getattr(self, "_steps", ()), *modules]

    def forward(self, x: Any) -> Any:
        for name in self._steps:
            x = getattr(self, name)(x)
        return x

    def get_example_inputs(self) -> tuple[Any, ...]:
        """Arguments of a call."""
        return (torch.rand(1, 5),)


def _fuse(model: nn.Module, groups: Any) -> None:
    fuse = ao.fuse_modules_qat if model.training else ao.fuse_modules
    fuse(model, groups, inplace=True)


# Linear layers


class SingleLayerLinearModel(_Chain):
    def __init__(self) -> None:
        super().__init__()
        self._add(fc1=nn.Linear(5, 5))


class AnnotatedSingleLayerLinearModel(_Chain):
    def __init__(self, qengine: str = "fbgemm") -> None:
        super().__init__()
        self.qconfig = ao.get_default_qconfig(qengine)
        self._add(fc1=QuantWrapper(nn.Linear(5, 5)))


class SingleLayerLinearDynamicModel(_Chain):
    def __init__(self, qengine: str = "fbgemm") -> None:
        super().__init__()
        self.qconfig = ao.get_default_qconfig(qengine)
        self._add(fc1=nn.Linear(5, 5))


class TwoLayerLinearModel(_Chain):
    def __init__(self) -> None:
        super().__init__()
        self._add(fc1=nn.Linear(5, 8), fc2=nn.Linear(8, 5))


class AnnotatedTwoLayerLinearModel(_Chain):
    def __init__(self) -> None:
        super().__init__()
        self._add(fc1=nn.Linear(5, 8), fc2=QuantWrapper(nn.Linear(8, 5)))
        self.fc2.qconfig = ao.get_default_qconfig("fbgemm")


class LinearReluModel(_Chain):
    def __init__(self) -> None:
        super().__init__()
        self._add(fc=nn.Linear(5, 5), relu=nn.ReLU())


class LinearReluLinearModel(_Chain):
    def __init__(self) -> None:
        super().__init__()
        self._add(fc1=nn.Linear(5, 8), relu=nn.ReLU(), fc2=nn.Linear(8, 5))


class NestedModel(_Chain):
    def __init__(self) -> None:
        super().__init__()
        last = nn.Linear(5, 5)
        self._add(sub1=LinearReluModel(), sub2=TwoLayerLinearModel(), fc3=last)


class AnnotatedNestedModel(NestedModel):
    def __init__(self, qengine: str) -> None:
        super().__init__()
        self.fc3 = QuantWrapper(self.fc3)
        self.fc3.qconfig = ao.default_qconfig
        self.sub2.fc1 = QuantWrapper(self.sub2.fc1)
        by_channel = qengine == "fbgemm"
        self.sub2.fc1.qconfig = (
            ao.default_per_channel_qconfig if by_channel else ao.default_qconfig
        )


class AnnotatedSubNestedModel(NestedModel):
    def __init__(self) -> None:
        super().__init__()
        self.sub2, self.fc3 = QuantWrapper(self.sub2), QuantWrapper(self.fc3)
        self.fc3.qconfig = self.sub2.qconfig = ao.default_qconfig


class AnnotatedCustomConfigNestedModel(NestedModel):
    def __init__(self) -> None:
        super().__init__()
        self.fc3 = QuantWrapper(self.fc3)
        self.fc3.qconfig = self.sub2.qconfig = ao.default_qconfig
        self.sub2.fc1.qconfig = ao.QConfig(
            activation=ao.default_observer.with_args(
                dtype=torch.quint8, qscheme=torch.per_tensor_affine
            ),
            weight=ao.default_weight_observer,
        )
        self.sub2.fc1 = QuantWrapper(self.sub2.fc1)
        self.sub2.fc2 = QuantWrapper(self.sub2.fc2)


class InnerModule(_Chain):
    def __init__(self) -> None:
        super().__init__()
        self._add(fc1=nn.Linear(5, 8), relu1=nn.ReLU())
        self._add(fc2=nn.Linear(8, 5), relu2=nn.ReLU())

    def fuse_modules(self) -> None:
        """Has each linear layer and its ReLU as one."""
        _fuse(self, [["fc1", "relu1"], ["fc2", "relu2"]])


class SkipQuantModel(_Chain):
    def __init__(self) -> None:
        super().__init__()
        self._add(sub=InnerModule(), fc=nn.Linear(5, 5))

    def fuse_modules(self) -> None:
        """Has layers within it as one."""
        self.sub.fuse_modules()


class AnnotatedSkipQuantModel(_Chain):
    def __init__(self, qengine: str) -> None:
        super().__init__()
        self.qconfig = ao.get_default_qconfig(qengine)
        self._add(sub=QuantWrapper(InnerModule()), fc=nn.Linear(5, 5))
        self.fc.qconfig = None

    def fuse_modules(self) -> None:
        """Has layers within it as one."""
        self.sub.module.fuse_modules()


class _Stubbed(_Chain):
    """A chain between stubs."""

    def __init__(self, qconfig: Any, **modules: Any) -> None:
        super().__init__()
        self.qconfig = qconfig
        self._add(quant=QuantStub(), **modules, dequant=DeQuantStub())


class QuantStubModel(_Stubbed):
    def __init__(self) -> None:
        super().__init__(ao.get_default_qconfig("qnnpack"), fc=nn.Linear(5, 5))


class ManualLinearQATModel(_Stubbed):
    def __init__(self, qengine: str) -> None:
        layers = {"fc1": nn.Linear(5, 1), "fc2": nn.Linear(1, 10)}
        super().__init__(ao.get_default_qat_qconfig(qengine), **layers)


class ManualDropoutQATModel(_Stubbed):
    def __init__(self, qengine: str) -> None:
        layers = {"fc1": nn.Linear(5, 1), "dropout": nn.Dropout(0.5)}
        super().__init__(ao.get_default_qat_qconfig(qengine), **layers)


class ManualLinearDynamicQATModel(_Chain):
    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        self.qconfig = qconfig or ao.default_dynamic_qat_qconfig
        self._add(fc1=nn.Linear(5, 1), fc2=nn.Linear(1, 10))


class _Rows(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.view(-1, 64).contiguous()


class ManualConvLinearQATModel(_Stubbed):
    def __init__(self, qconfig: Any = None) -> None:
        super().__init__(
            qconfig or ao.get_default_qat_qconfig("qnnpack"),
            conv=nn.Conv2d(3, 1, kernel_size=3),
            rows=_Rows(),
            fc1=nn.Linear(64, 10),
            fc2=nn.Linear(10, 10),
        )


class ManualConvLinearSymmQATModel(ManualConvLinearQATModel):
    def __init__(self) -> None:
        super().__init__(ao.default_symmetric_qnnpack_qat_qconfig)


# Other layers


class ActivationsTestModel(_Stubbed):
    def __init__(self) -> None:
        layers = {"hardswish": nn.Hardswish(), "elu": nn.ELU()}
        super().__init__(ao.get_default_qconfig("fbgemm"), **layers)


class NormalizationTestModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.quant = QuantStub()
        self.fc1 = nn.Linear(5, 8)
        self.layer_norm = nn.LayerNorm(8)
        self.group_norm = nn.GroupNorm(2, 8)
        self.instance_norm1d = nn.InstanceNorm1d(8)
        self.instance_norm2d = nn.InstanceNorm2d(8)
        self.instance_norm3d = nn.InstanceNorm3d(8)

    def forward(self, x: Any) -> Any:
        x = self.layer_norm(self.fc1(self.quant(x)))
        x = self.group_norm(x.unsqueeze(-1).repeat(1, 1, 3))
        x = self.instance_norm2d(self.instance_norm1d(x).unsqueeze(-1))
        return self.instance_norm3d(x.unsqueeze(-1))


class RNNDynamicModel(_Chain):
    def __init__(self, mod_type: str) -> None:
        super().__init__()
        self.qconfig = ao.default_dynamic_qconfig
        self._add(mod={"GRU": nn.GRU, "LSTM": nn.LSTM}[mod_type](2, 2))


class RNNCellDynamicModel(nn.Module):
    def __init__(self, mod_type: str) -> None:
        super().__init__()
        self.qconfig = ao.default_dynamic_qconfig
        kinds = {"GRUCell": nn.GRUCell, "LSTMCell": nn.LSTMCell}
        if mod_type in kinds:
            self.mod = kinds[mod_type](2, 2)
        else:
            kind = mod_type.removeprefix("RNN").lower()
            self.mod = nn.RNNCell(2, 2, nonlinearity=kind)

    def forward(self, x: Any, *state: Any) -> Any:
        return self.mod(x, *state)


class EmbeddingBagModule(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.EmbeddingBag(10, 12, include_last_offset=True, mode="sum")

    def forward(self, indices: Any, offsets: Any, per_sample_weights: Any) -> Any:
        return self.emb(indices, offsets, per_sample_weights)


class EmbeddingModule(_Chain):
    def __init__(self) -> None:
        super().__init__()
        self._add(emb=nn.Embedding(10, 12))


class EmbeddingWithStaticLinear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.EmbeddingBag(10, 12)
        self.emb.qconfig = ao.float_qparams_weight_only_qconfig
        self.fc = nn.Linear(4, 2)
        self.qconfig = ao.default_qconfig
        self.quant, self.dequant = QuantStub(), DeQuantStub()

    def forward(self, indices: Any, offsets: Any, linear_in: Any) -> Any:
        found = self.emb(indices, offsets)
        made = self.dequant(self.fc(self.quant(linear_in)))
        return torch.cat([made, found], dim=1)


class ManualEmbeddingBagLinear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.EmbeddingBag(10, 12, mode="sum")
        self.emb.qconfig = ao.default_embedding_qat_qconfig
        self.quant, self.dequant = QuantStub(), DeQuantStub()
        self.linear = nn.Linear(12, 1)
        self.qconfig = ao.get_default_qat_qconfig("qnnpack")

    def forward(
        self, input: Any, offsets: Any = None, per_sample_weights: Any = None
    ) -> Any:
        found = self.emb(input, offsets, per_sample_weights)
        return self.dequant(self.linear(self.quant(found)))


class DeFusedEmbeddingBagLinear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(10, 12)
        self.emb.qconfig = ao.default_embedding_qat_qconfig
        self.bagging_op = torch.sum
        self.quant, self.dequant = QuantStub(), DeQuantStub()
        self.linear = nn.Linear(12, 1)
        self.qconfig = ao.get_default_qat_qconfig("qnnpack")

    def forward(self, input: Any) -> Any:
        found = self.bagging_op(self.emb(input), dim=1)
        return self.dequant(self.linear(self.quant(found)))


class ModelWithFunctionals(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mycat = FloatFunctional()
        self.myadd = FloatFunctional()
        self.myadd_relu = FloatFunctional()
        self.mymatmul = FloatFunctional()

    def forward(self, x: Any) -> Any:
        y = self.mycat.cat([x, x, x])
        z = self.myadd.add(y, y)
        w = self.myadd_relu.add_relu(z, z)
        return self.mymatmul.matmul(w, w.T)


# Layers that become one


class SubModelForFusion(_Chain):
    def __init__(self) -> None:
        super().__init__()
        self._add(conv=nn.Conv2d(2, 2, 1, bias=False), bn=nn.BatchNorm2d(2))


class SubModelWithoutFusion(_Chain):
    def __init__(self) -> None:
        super().__init__()
        self._add(conv=nn.Conv2d(2, 2, 1, bias=False), relu=nn.ReLU())


class ModelForFusion(nn.Module):
    def __init__(self, qconfig: Any) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 2, 1, bias=False)
        self.bn1, self.relu1 = nn.BatchNorm2d(2), nn.ReLU(inplace=True)
        self.sub1, self.sub2 = SubModelForFusion(), SubModelWithoutFusion()
        self.fc = nn.Linear(36, 10)
        self.quant, self.dequant = QuantStub(), DeQuantStub()
        self.qconfig = qconfig
        self.conv2 = nn.Conv3d(3, 2, 1, bias=False)
        self.relu2 = nn.ReLU()
        self.bn2, self.relu3 = nn.BatchNorm3d(2), nn.ReLU(inplace=True)
        self.conv3 = nn.Conv1d(3, 3, 2)
        self.bn3, self.relu4 = nn.BatchNorm1d(3), nn.ReLU(inplace=True)
        self.sub2.qconfig = self.fc.qconfig = None

    def forward(self, x: Any) -> Any:
        x = self.relu4(self.bn3(self.conv3(self.quant(x.squeeze(2)))))
        x = x.unsqueeze(2)
        y = x.unsqueeze(2)
        x = self.sub1(self.relu1(self.bn1(self.conv1(x))))
        x = self.sub2(self.dequant(x))
        x = self.fc(x.reshape(-1, 36).contiguous())
        self.dequant(self.relu3(self.bn2(self.relu2(self.conv2(y)))))
        return x


class ConvBNReLU(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(3, 3, 1, 1, bias=False), nn.BatchNorm2d(3), nn.ReLU()
        )


class ModelWithSequentialFusion(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.relu1 = nn.Conv2d(3, 3, 1), nn.ReLU()
        self.features = nn.Sequential(*[ConvBNReLU() for _ in range(3)])
        self.classifier = nn.Sequential(nn.Linear(300, 10), nn.ReLU())
        self.seq = nn.Sequential()
        self.quant, self.dequant = QuantStub(), DeQuantStub()

    def forward(self, x: Any) -> Any:
        x = self.features(self.relu1(self.conv1(self.quant(x))))
        x = self.classifier(torch.reshape(x, (-1, 300)))
        return self.dequant(self.seq(x))


class ModelForFusionWithBias(_Chain):
    def __init__(self) -> None:
        super().__init__()
        self._add(quant=QuantStub(), conv1=nn.Conv2d(3, 2, 5), bn1=nn.BatchNorm2d(2))
        self._add(relu1=nn.ReLU(inplace=True), conv2=nn.Conv2d(2, 2, 1))
        self._add(bn2=nn.BatchNorm2d(2), dequant=DeQuantStub())


class ModelForLinearBNFusion(_Chain):
    def __init__(self) -> None:
        super().__init__()
        self._add(fc=nn.Linear(20, 10), bn=nn.BatchNorm1d(10))
        nn.init.uniform_(self.bn.weight)
        nn.init.uniform_(self.bn.bias)


class ModelForConvTransposeBNFusion(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.ConvTranspose1d(3, 3, 1), nn.BatchNorm1d(3)
        self.conv2, self.bn2 = nn.ConvTranspose2d(3, 3, 1), nn.BatchNorm2d(3)
        self.conv3, self.bn3 = nn.ConvTranspose3d(3, 3, 1), nn.BatchNorm3d(3)

    def forward(self, x: Any) -> Any:
        x = self.bn1(self.conv1(x)).unsqueeze(2)
        x = self.bn2(self.conv2(x)).unsqueeze(2)
        return self.bn3(self.conv3(x))


class ResNetBase(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 3, (1, 1), bias=False)
        self.bn1 = nn.BatchNorm2d(3)
        self.relu1, self.relu2 = nn.ReLU(), nn.ReLU()
        self.downsample = nn.Identity()
        self.myop = FloatFunctional()
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(3, 1)

    def forward(self, x: Any) -> Any:
        made = self.relu1(self.bn1(self.conv1(x)))
        made = self.relu2(self.myop.add(made, self.downsample(x)))
        return self.fc(torch.flatten(self.avgpool(made), 1))

    def fuse_model(self) -> None:
        """Has the convolution and what follows as one."""
        _fuse(self, [["conv1", "bn1", "relu1"]])


class DummyObserver(nn.Module):
    def calculate_qparams(self) -> tuple[float, int]:
        """A scale and zero point that need no examples."""
        return 1.0, 0

    def forward(self, x: Any) -> Any:
        return x
