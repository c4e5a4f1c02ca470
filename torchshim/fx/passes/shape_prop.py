"""What the tensors in a graph are: run once with an example.

https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

import traceback
from typing import Any, NamedTuple

from torchshim._core.layout import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    memory_format,
)
from torchshim._core.meta import Size
from torchshim._errors import Unsupported
from torchshim._tensor import Tensor
from torchshim.fx.graph_module import GraphModule
from torchshim.fx.interpreter import Interpreter
from torchshim.fx.node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]

_FORMATS = (contiguous_format, channels_last, channels_last_3d)


class TensorMetadata(NamedTuple):
    """What a tensor is, without its values."""

    shape: Size
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(
    result: Any, include_contiguity: bool = True
) -> TensorMetadata:
    """What a tensor is; its memory format only if asked for."""
    dense = str(result.layout) == "torch.strided"
    found = None
    if include_contiguity and dense:
        fitting = (f for f in _FORMATS if result.is_contiguous(memory_format=f))
        found = next(fitting, None)
    return TensorMetadata(
        result.shape,
        result.dtype,
        result.requires_grad,
        result.stride() if dense else (),
        found,
        False,
        {},
    )


class ShapeProp(Interpreter):
    """Runs a module and notes what each node gives: `meta["tensor_meta"]`, `["type"]`.

    `fake_mode` is refused, as there are no fake tensors; those on the device meta cost
    no computation either. RuntimeError names the node where running fails.

    >>> import torchshim as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: x.sum(0))
    >>> _ = ShapeProp(traced).propagate(torch.ones(2, 3))
    >>> [tuple(node.meta["tensor_meta"].shape) for node in traced.graph.nodes]
    [(2, 3), (3,), (3,)]
    """

    def __init__(self, gm: GraphModule, fake_mode: Any = None) -> None:
        if fake_mode is not None:
            raise Unsupported(
                "torch.fx: fake_mode is not supported: there are no fake tensors; "
                "tensors on the device meta have no values either"
            )
        super().__init__(gm)

    def run_node(self, n: Node) -> Any:
        """Runs one node, and notes what it gives."""
        try:
            result = super().run_node(n)
        except Exception as error:
            traceback.print_exc()
            raise RuntimeError(
                f"ShapeProp error for: node={n.format_node()} with meta={n.meta}"
            ) from error
        tensors: list[Tensor] = []

        def describe(obj: Any) -> Any:
            if not isinstance(obj, Tensor):
                return obj
            tensors.append(obj)
            return _extract_tensor_metadata(obj)

        meta = map_aggregate(result, describe)
        if tensors:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Runs the module with these arguments: what it gives."""
        return super().run(*args)
