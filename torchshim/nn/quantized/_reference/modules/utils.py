"""The older name of `torch.ao.nn.quantized.reference.modules.utils`."""

from torchshim.ao.nn.quantized.reference.modules.utils import *  # noqa: F403
from torchshim.ao.nn.quantized.reference.modules.utils import __all__ as __all__
from torchshim.ao.nn.quantized.reference.modules.utils import (
    _get_weight_qparam_keys as _get_weight_qparam_keys,
)
from torchshim.ao.nn.quantized.reference.modules.utils import (
    _quantize_and_dequantize_weight as _quantize_and_dequantize_weight,
)
from torchshim.ao.nn.quantized.reference.modules.utils import (
    _quantize_weight as _quantize_weight,
)
from torchshim.ao.nn.quantized.reference.modules.utils import (
    _save_weight_qparams as _save_weight_qparams,
)
