"""How operators, tensors and lines of the traced program look in generated code."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torchshim._questions import SymBool, SymFloat, SymInt
from torchshim._tensor import Tensor
from torchshim.fx.node import Node

# Operators that have a form with swapped operands.
reflectable_magic_methods = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "floordiv": "{} // {}",
    "truediv": "{} / {}",
    "div": "{} / {}",
    "mod": "{} % {}",
    "pow": "{} ** {}",
    "lshift": "{} << {}",
    "rshift": "{} >> {}",
    "and_": "{} & {}",
    "or_": "{} | {}",
    "xor": "{} ^ {}",
    "getitem": "{}[{}]",
    "matmul": "{} @ {}",
}

magic_methods = {
    "eq": "{} == {}",
    "ne": "{} != {}",
    "lt": "{} < {}",
    "gt": "{} > {}",
    "le": "{} <= {}",
    "ge": "{} >= {}",
    "pos": "+{}",
    "neg": "-{}",
    "invert": "~{}",
    **reflectable_magic_methods,
}

inplace_methods = {
    **{
        f"i{name.rstrip('_')}": text.replace(" {}", "= {}")
        for name, text in reflectable_magic_methods.items()
        if name not in ("div", "getitem")
    },
    "setitem": "{}[{}] = {}",
}
# Layouts of tensors that have no strides to tell.
_NO_STRIDES = ("torch.sparse_csc", "torch.sparse_csr")

_COLORS = {
    "blue": "\033[34m",
    "red": "\033[31m",
    "dim": "\033[2m",
    "dim_blue": "\033[2m\033[34m",
    "dim_green": "\033[2m\033[32m",
}


def colors(wanted: bool) -> Callable[[str, str], str]:
    """How text is painted for a terminal, or left as it is."""
    if not wanted:
        return lambda color, text: text
    return lambda color, text: f"{_COLORS[color]}{text}\033[0m"


def tensor_annotation(
    node: Node, options: Any, paint: Callable[[str, str], str]
) -> str | None:
    """What is known of a node's value, as an annotation; None where nothing is."""
    meta = node.meta
    known = (k for k in ("val", "tensor_meta", "example_value") if k in meta)
    value: Any = meta.get(next(known, ""))
    if isinstance(value, Tensor) and str(value.layout) not in _NO_STRIDES:
        text = paint("red", value.dtype.abbr) + paint("blue", _sizes(value.shape))
        text += paint("dim_blue", _sizes(value.stride()) if options.stride else "")
        text += paint("dim_green", str(value.device) if options.device else "")
        plain = type(value) is Tensor
        return f': "{text}"' if plain else f': "{type(value).__name__}({text})"'
    if isinstance(value, (SymInt, SymFloat, SymBool)):
        return f': "Sym({value!r})"'
    if hasattr(value, "memory_format") and hasattr(value, "qparams"):
        return f': "{value.dtype.abbr}{_sizes(value.shape)}"'
    return None


def _sizes(values: Any) -> str:
    return f"[{', '.join(map(str, values))}]"


@dataclass(frozen=True)
class ParsedStackTrace:
    """A line of the traced program."""

    file: str
    lineno: str
    name: str
    code: str

    def get_summary_str(self) -> str:
        """It in one line."""
        return f"File: {self.file}:{self.lineno} in {self.name}, code: {self.code}"


_FRAME = re.compile(r"^File \"(.+)\", line (\d+), in (.+)$")


def parse_stack_trace(
    stack_trace: str | None,
    filter_fn: Callable[[str, str, str], bool] | None = None,
) -> ParsedStackTrace | None:
    """The innermost line of a recorded stack, of those that the filter takes."""
    lines = (stack_trace or "").strip().split("\n")
    for line, code in zip(lines[-2::-1], lines[:0:-1], strict=True):
        match = _FRAME.match(line.strip())
        if match is None:
            continue
        file, number, name = match.groups()
        if filter_fn is None or filter_fn(file, name, code.strip()):
            return ParsedStackTrace(file, number, name, code.strip())
    return None
