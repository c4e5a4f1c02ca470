"""Networks: modules, parameters, functions, as `torch.nn`."""

from torchshim._lazy import submodules as _submodules
from torchshim.nn import attention as attention
from torchshim.nn import common_types as common_types
from torchshim.nn import functional as functional
from torchshim.nn import grad as grad
from torchshim.nn import init as init
from torchshim.nn import modules as modules
from torchshim.nn import parallel as parallel
from torchshim.nn import utils as utils
from torchshim.nn.modules import *  # noqa: F403
from torchshim.nn.modules.utils import factory_kwargs as factory_kwargs
from torchshim.nn.parallel import DataParallel as DataParallel
from torchshim.nn.parameter import Buffer as Buffer
from torchshim.nn.parameter import Parameter as Parameter
from torchshim.nn.parameter import UninitializedBuffer as UninitializedBuffer
from torchshim.nn.parameter import UninitializedParameter as UninitializedParameter

setattr(functional, "grad", grad)  # noqa: B010 (a name of PyTorch's, too)

__getattr__ = _submodules(__name__, "intrinsic", "qat", "quantizable", "quantized")
