"""`torch.testing._internal.two_tensor`: needs `__torch_dispatch__`."""

from torchshim._errors import unsupported
from torchshim._overrides import NO_DISPATCH

_PLACE = "testing._internal.two_tensor"
TwoTensor = unsupported(f"{_PLACE}.TwoTensor", NO_DISPATCH)
TwoTensorMode = unsupported(f"{_PLACE}.TwoTensorMode", NO_DISPATCH)
