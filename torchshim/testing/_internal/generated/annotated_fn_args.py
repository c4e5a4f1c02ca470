"""What functions that PyTorch writes in C++ have to be given: for `test_overrides`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from torchshim._parser import SIGNATURES, Parameter, Signature
from torchshim._tensor import Tensor

# The sections of the table of signatures, and where their functions are public.
_SPACES = {
    "torch": "torchshim",
    "nn.functional": "torchshim.nn.functional",
    "fft": "torchshim.fft",
    "linalg": "torchshim.linalg",
    "special": "torchshim.special",
}


def _argument(parameter: Parameter) -> dict[str, Any]:
    described: dict[str, Any] = {
        "is_kwarg_only": str(parameter.keyword_only),
        "name": parameter.name,
        "simple_type": parameter.kind + "?" * parameter.nullable,
    }
    if parameter.length:
        described["size"] = parameter.length
    return described


_SELF = Parameter("Tensor self", False)


def _described() -> dict[Callable[..., Any], list[dict[str, Any]]]:
    found: dict[Callable[..., Any], list[dict[str, Any]]] = {}
    title = ""
    space: Any = None
    for line in SIGNATURES.read_text().splitlines():
        if line.startswith("["):
            title = line.strip("[]")
            name = _SPACES.get(title)
            space = importlib.import_module(name) if name else None
            if title == "Tensor":
                space = Tensor
        elif space is not None and line and not line.startswith("#"):
            signature = Signature(line)
            function = getattr(space, signature.name.removeprefix(f"{title}_"), None)
            parameters = [p for p in signature.params if p.default is None]
            if function is None or function in found or signature.hidden:
                continue
            if any(p.kind == "PyObject*" for p in parameters):
                continue
            if space is Tensor:
                parameters.insert(0, _SELF)
            # Of several signatures the first.
            found[function] = [_argument(p) for p in parameters]
    return found


# For each function its arguments without a default.
annotated_args = _described()
