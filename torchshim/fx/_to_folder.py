"""Writing a module as a package of source and state."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from torchshim import _warnings as warnings
from torchshim import nn
from torchshim.fx.graph import _custom_builtins
from torchshim.nn.modules.module import _addindent

# Layers that their text makes again.
_AS_TEXT = (
    *(nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d),
    *(nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d),
)


def write_folder(module: Any, folder: str | os.PathLike[str], name: str) -> None:
    """Writes `module.py` with a class of this name, and the state it loads."""
    from torchshim.serialization import save

    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    save(module.state_dict(), folder / "state_dict.pt")
    pickled: list[str] = []
    lines: list[str] = []
    for child_name, child in module.named_children():
        text = repr(child)
        if type(child) not in _AS_TEXT:
            file = folder / f"{child_name}.pt"
            save(child, file)
            pickled.append(child_name)
            comment = text.replace("\r", " ").replace("\n", " ")
            text = f"torch.load(r'{file}', weights_only=False)) # {comment}"
            lines.append(f"setattr(self, '{child_name}', {text}")
        else:
            lines.append(f"setattr(self, '{child_name}', {text})")
    for key, buffer in module._buffers.items():
        if buffer is not None:
            lines.append(f"self.register_buffer('{key}', {_empty(buffer)})")
    for key, param in module._parameters.items():
        if param is not None:
            made = f"torch.nn.Parameter({_empty(param)})"
            lines.append(f"setattr(self, '{key}', {made})")
    lines.append(f"self.load_state_dict(torch.load(r'{folder}/state_dict.pt'))")
    imports = "\n".join(each.import_str for each in _custom_builtins.values())
    body = "".join(f"        {line}\n" for line in lines)
    (folder / "module.py").write_text(
        f"\nimport torch\n{imports}\n\nfrom torch.nn import *\n"
        f"class {name}(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        f"{body}{_addindent(module.code, 4)}\n"
    )
    (folder / "__init__.py").write_text("from .module import *")
    if pickled:
        warnings.warn(
            "Was not able to save the following children modules as reprs -saved as "
            f"pickled files instead: {pickled}",
            stacklevel=3,
        )


def _empty(tensor: Any) -> str:
    return f"torch.empty({list(tensor.shape)}, dtype={tensor.dtype})"
