"""`torch.testing._internal.autograd_function_db`: no custom functions are listed."""

from typing import Any

autograd_function_db: list[Any] = []
