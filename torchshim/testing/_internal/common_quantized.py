"""`torch.testing._internal.common_quantized`: nothing is quantized here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from torchshim._errors import refused
from torchshim.testing._internal._conditions import never_skipped

#: No kernels for quantized values, so that tests of them run for none.
supported_qengines: list[str] = []

globals().update(
    refused(
        __name__,
        "_calculate_dynamic_per_channel_qparams _calculate_dynamic_qparams "
        "_dequantize _quantize _requantize",
        "there are no quantized products",
    )
)

override_qengines = never_skipped


@contextlib.contextmanager
def override_quantized_engine(qengine: Any) -> Iterator[None]:
    """Nothing within a block: there are no engines to choose from."""
    yield


def qengine_is_fbgemm() -> bool:
    """Whether there is FBGEMM: no."""
    return False


qengine_is_qnnpack = qengine_is_onednn = qengine_is_x86 = qengine_is_fbgemm
