"""Short names of dtypes: `f32` of float32."""

import re

from torchshim._core.dtypes import DTYPES

# PyTorch leaves quantized ones out, and integers of less than a byte.
_LEFT_OUT = re.compile(r"u?int[1-7]|q.*")
dtype_abbrs = {d: d.abbr for d in DTYPES if not _LEFT_OUT.fullmatch(d.name)}
