"""What nested tensors are made by: views of values; padded tensors of them and back.

A jagged nested tensor (`_functions/nested_tensor.py`) is a tensor of values and one of
offsets; where each of its elements belongs is found on the host, so that index tensors
are arguments here.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from torchshim._core.op import Array, Scalar, View, op
from torchshim._core.promotion import element

_PRIVATE: dict[str, Any] = {"namespaces": (), "method": False, "out": False}


def _same(values: Array) -> Array:
    """The same memory, as that of a nested tensor or as its values."""
    return values


#: Nodes of autograd that PyTorch has of nested tensors, where only what is recorded of
#: their values has another name: of views, and of other functions.
VIEWS = {
    "NestedViewFromJagged": "NestedViewFromJaggedBackward0",
    "NestedViewFromBuffer": "NestedViewFromBufferBackward0",
    "NestedGetValues": "NestedGetValuesBackward0",
    "Transpose": "TransposeBackward0",
    "Unsqueeze": "UnsqueezeBackward0",
    "Narrow": "SliceBackward0",
    "SplitWithSizes": "SplitWithSizesBackward0",
    **{
        name: f"{name}BackwardAutogradNestedTensor0"
        for name in ("Chunk", "Select", "Squeeze", "Unbind", "Values", "View")
    },
}
RESULTS = {
    "NestedTensorFromTensorList": "NestedTensorFromTensorListBackward0",
    "Mean": "MeanBackwardAutogradNestedTensor0",
    "Sum": "SumBackwardAutogradNestedTensor0",
    "SumDim": "SumBackwardAutogradNestedTensor1",
    "MeanDim": "MeanBackward1",
    **{
        name: f"{name}Backward0"
        for name in (
            *("Bmm", "Clone", "Linear", "Matmul", "NativeDropout"),
            *("NativeLayerNorm", "Softmax"),
        )
    },
}
for _name, _node in VIEWS.items():
    op(
        name=f"nested_view_{_name}",
        view=View(lambda *geometry: geometry, lambda base, new: new),
        grad_fn=_node,
        saves=(),
        passes=("values",),
        **_PRIVATE,
    )(_same)
for _name, _node in RESULTS.items():
    op(
        name=f"nested_node_{_name}",
        grad_fn=_node,
        saves=(),
        curved=False,
        **_PRIVATE,
    )(_same)


@op(grad_fn="ToPaddedTensorBackward0", **_PRIVATE)
def nested_to_padded(values: Array, places: Array, padding: Scalar) -> Array:
    """Rows of the values by their places; the padding where there is none."""
    count = values.shape[0]
    fill = jnp.asarray(element(padding, values.dtype)).astype(values.dtype)
    shape = *places.shape, *values.shape[1:]
    if not count:
        return jnp.broadcast_to(fill, shape)
    rows = jnp.take(values, places.reshape(-1), axis=0, mode="clip").reshape(shape)
    there = (places < count).reshape(*places.shape, *(1 for _ in values.shape[1:]))
    return jnp.where(there, rows, fill)


@op(grad_fn="NestedFromPaddedTensorBackward0", **_PRIVATE)
def nested_from_padded(padded: Array, places: Array) -> Array:
    """The rows of the first two dimensions that stand at these places."""
    rows = padded.reshape(-1, *padded.shape[2:])
    if not rows.shape[0]:
        return jnp.zeros((places.shape[0], *rows.shape[1:]), rows.dtype)
    return jnp.take(rows, places, axis=0, mode="clip")
