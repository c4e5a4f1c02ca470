"""`torch.testing._internal.custom_op_db`: no operators can be registered."""

from typing import Any

custom_op_db: list[Any] = []
