"""Models of integers (`torch.ao.quantization`): observed, trained, converted.

`prepare` puts observers (`observer.py`) on the layers of a model as settings say
(`qconfig.py`), `prepare_qat` modules that round (`fake_quantize.py`), and `convert`
replaces layers by those of `torch.ao.nn.quantized`. `quantize_dynamic` does so without
examples. https://docs.pytorch.org/docs/2.13/quantization.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torchshim._lazy import submodules as _submodules
from torchshim.ao.quantization.fake_quantize import *  # noqa: F403
from torchshim.ao.quantization.fuse_modules import fuse_modules, fuse_modules_qat  # noqa: F401
from torchshim.ao.quantization.fuser_method_mappings import *  # noqa: F403
from torchshim.ao.quantization.observer import *  # noqa: F403
from torchshim.ao.quantization.observer import ObserverBase
from torchshim.ao.quantization.qconfig import *  # noqa: F403
from torchshim.ao.quantization.qconfig_mapping import *  # noqa: F403
from torchshim.ao.quantization.quant_type import *  # noqa: F403
from torchshim.ao.quantization.quantization_mappings import *  # noqa: F403
from torchshim.ao.quantization.quantize import *  # noqa: F403
from torchshim.ao.quantization.quantize_jit import *  # noqa: F403
from torchshim.ao.quantization.stubs import *  # noqa: F403
from torchshim.ao.quantization.utils import (
    MatchAllNode,  # noqa: F401
    Pattern,  # noqa: F401
    get_combined_dict,  # noqa: F401
    is_per_channel,
)

#: An observer, or a module that rounds.
ObserverOrFakeQuantize = Any

_NAMES = """
AffineQuantizedObserverBase DeQuantStub FakeQuantize FakeQuantizeBase
FixedQParamsFakeQuantize FixedQParamsObserver FusedMovingAvgObsFakeQuantize
Granularity HistogramObserver MappingType MatchAllNode MinMaxObserver
MovingAverageMinMaxObserver MovingAveragePerChannelMinMaxObserver NoopObserver
ObserverBase ObserverOrFakeQuantize Pattern PerAxis PerBlock PerChannelMinMaxObserver
PerGroup PerRow PerTensor PerToken PlaceholderObserver QConfig QConfigAny
QConfigDynamic QConfigMapping QuantStub QuantType QuantWrapper RecordingObserver
ReuseInputObserver TorchAODType UniformQuantizationObserverBase ZeroPointDomain
add_quant_dequant convert convert_dynamic_jit convert_jit
default_affine_fixed_qparams_fake_quant default_affine_fixed_qparams_observer
default_debug_observer default_dynamic_fake_quant default_dynamic_quant_observer
default_embedding_fake_quant default_embedding_fake_quant_4bit default_eval_fn
default_fake_quant default_fixed_qparams_range_0to1_fake_quant
default_fixed_qparams_range_0to1_observer
default_fixed_qparams_range_neg1to1_fake_quant
default_fixed_qparams_range_neg1to1_observer default_float_qparams_observer
default_float_qparams_observer_4bit default_fused_act_fake_quant
default_fused_per_channel_wt_fake_quant default_fused_wt_fake_quant
default_histogram_fake_quant default_histogram_observer default_observer
default_per_channel_weight_fake_quant default_per_channel_weight_observer
default_placeholder_observer default_reuse_input_observer
default_symmetric_fixed_qparams_fake_quant default_symmetric_fixed_qparams_observer
default_weight_fake_quant default_weight_observer disable_fake_quant disable_observer
enable_fake_quant enable_observer fuse_conv_bn fuse_conv_bn_jit fuse_conv_bn_relu
fuse_convtranspose_bn fuse_linear_bn fuse_modules fuse_modules_qat
fused_per_channel_wt_fake_quant_range_neg_127_to_127
fused_wt_fake_quant_range_neg_127_to_127 get_block_size get_combined_dict
get_default_compare_output_module_list get_default_custom_config_dict
get_default_dynamic_quant_module_mappings
get_default_dynamic_sparse_quant_module_mappings
get_default_float_to_quantized_operator_mappings get_default_qat_module_mappings
get_default_qat_qconfig get_default_qat_qconfig_dict get_default_qat_qconfig_mapping
get_default_qconfig get_default_qconfig_dict get_default_qconfig_mapping
get_default_qconfig_propagation_list get_default_static_quant_module_mappings
get_default_static_quant_reference_module_mappings
get_default_static_sparse_quant_module_mappings get_dynamic_quant_module_class
get_embedding_qat_module_mappings get_embedding_static_quant_module_mappings
get_fuser_method get_fuser_method_new get_observer_state_dict get_quantized_operator
get_static_quant_module_class load_observer_state_dict no_observer_set
per_channel_weight_observer_range_neg_127_to_127 prepare prepare_dynamic_jit
prepare_jit prepare_qat propagate_qconfig_ qconfig_equals quantize quantize_dynamic
quantize_dynamic_jit quantize_jit quantize_qat script_qconfig script_qconfig_dict
swap_module weight_observer_range_neg_127_to_127
""".split()
__all__ = [*_NAMES]  # pyright: ignore[reportUnsupportedDunderAll]


def default_eval_fn(model: Any, calib_data: Iterable[Any]) -> None:
    """Calls a model with the first of each pair: examples for its observers.

    >>> default_eval_fn(print, [("an example", "its class")])
    an example
    """
    for data, _ in calib_data:
        model(data)


class _DerivedObserverOrFakeQuantize(ObserverBase):
    """Notes nothing: its scale follows from what other observers noted."""

    def __init__(
        self,
        dtype: Any,
        obs_or_fqs: list[Any],
        derive_qparams_fn: Callable[[list[Any]], tuple[Any, Any]],
        quant_min: int | None = None,
        quant_max: int | None = None,
        qscheme: Any = None,
        ch_axis: int | None = None,
    ) -> None:
        super().__init__(dtype)
        self.obs_or_fqs = obs_or_fqs
        self.derive_qparams_fn = derive_qparams_fn
        self.quant_min = quant_min
        self.quant_max = quant_max
        self.qscheme = qscheme
        self.ch_axis = ch_axis
        if is_per_channel(qscheme) and ch_axis is None:
            raise AssertionError(
                "Must provide a valid ch_axis if qscheme is per channel"
            )

    def forward(self, x: Any) -> Any:
        return x

    def calculate_qparams(self) -> tuple[Any, Any]:
        return self.derive_qparams_fn(self.obs_or_fqs)


__getattr__ = _submodules(__name__, "quantize_fx")
