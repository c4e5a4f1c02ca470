"""The older name of `torch.ao.nn.quantized.modules.utils`."""

from torchshim.ao.nn.quantized.modules.utils import *  # noqa: F403
from torchshim.ao.nn.quantized.modules.utils import __all__ as __all__
from torchshim.ao.nn.quantized.modules.utils import (
    _hide_packed_params_repr as _hide_packed_params_repr,
)
from torchshim.ao.nn.quantized.modules.utils import (
    _ntuple_from_first as _ntuple_from_first,
)
from torchshim.ao.nn.quantized.modules.utils import _pair_from_first as _pair_from_first
from torchshim.ao.nn.quantized.modules.utils import _quantize_weight as _quantize_weight
