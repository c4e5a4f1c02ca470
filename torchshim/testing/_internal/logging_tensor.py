"""`torch.testing._internal.logging_tensor`: needs `__torch_dispatch__`."""

from torchshim._errors import unsupported
from torchshim._overrides import NO_DISPATCH

_PLACE = "testing._internal.logging_tensor"
LoggingTensor = unsupported(f"{_PLACE}.LoggingTensor", NO_DISPATCH)
LoggingTensorMode = unsupported(f"{_PLACE}.LoggingTensorMode", NO_DISPATCH)
LoggingTensorReentrant = unsupported(f"{_PLACE}.LoggingTensorReentrant", NO_DISPATCH)
capture_logs = unsupported(f"{_PLACE}.capture_logs", NO_DISPATCH)
capture_logs_with_logging_tensor_mode = unsupported(
    f"{_PLACE}.capture_logs_with_logging_tensor_mode", NO_DISPATCH
)
log_input = unsupported(f"{_PLACE}.log_input", NO_DISPATCH)
