"""`torch.testing._internal.hop_db`: higher-order operators; none has samples here."""

from typing import Any

hop_db: list[Any] = []
