"""Quantization of TorchScript: names that can be imported and refuse use."""

from torchshim._errors import refused

_NAMES = (
    "convert_dynamic_jit convert_jit fuse_conv_bn_jit prepare_dynamic_jit prepare_jit "
    "quantize_dynamic_jit quantize_jit script_qconfig script_qconfig_dict"
)
_OTHERS = "_prepare_ondevice_dynamic_jit _convert_ondevice_dynamic_jit"
_REASON = "there is no TorchScript; quantize the Python module"
globals().update(refused(__name__, f"{_NAMES} {_OTHERS}", _REASON))
__all__ = _NAMES.split()  # pyright: ignore[reportUnsupportedDunderAll]
