"""Records PyTorch's schemas: `python -m compat_suite.public.schemas`.

Needs torch 2.13.0. Of the operators that torchshim has, those forms are listed that
take or give tensors; the others are TorchScript's.
"""

from __future__ import annotations

import torch

from torchshim import ops
from torchshim._library import native

_HEAD = """\
# The schemas of PyTorch 2.13.0's operators. Recorded by
# `python -m compat_suite.public.schemas`.
"""


def recorded() -> str:
    """The schemas by name, several of one name in PyTorch's order."""
    lines: dict[str, list[str]] = {}
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        text = str(schema)
        ours = "Tensor" in text and "Dict(" not in text
        if space == "aten" and ours and ops.is_known(name):
            lines.setdefault(name, []).append(text.removeprefix("aten::"))
    found = (line for name in sorted(lines) for line in lines[name])
    return _HEAD + "".join(f"{line}\n" for line in found)


if __name__ == "__main__":
    native.SCHEMAS.write_text(recorded())
