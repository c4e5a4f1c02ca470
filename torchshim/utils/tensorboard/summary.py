"""What event files hold: TensorBoard's `Summary` messages, made of tensors and arrays.

https://docs.pytorch.org/docs/2.13/tensorboard.html
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
from tensorboard.compat.proto.summary_pb2 import (
    HistogramProto,
    Summary,
    SummaryMetadata,
)
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

from torchshim._tensor import Tensor


def make_np(value: Any) -> np.ndarray:
    """A tensor, array or number as a NumPy array."""
    if isinstance(value, Tensor):
        host = value.detach().cpu()._host()
        return host.astype(np.float32) if host.dtype.kind not in "?biufc" else host
    if isinstance(value, (str, list, tuple)):
        raise NotImplementedError(
            f"Got {type(value)}, but numpy array or torch tensor are expected."
        )
    return np.atleast_1d(value)


def scalar(tag: str, value: Any, new_style: bool = False) -> Summary:
    """One number."""
    found = make_np(value).squeeze()
    if found.ndim:
        raise AssertionError(
            f"Tensor should contain one element (0 dimensions). Was "
            f"given size: {found.size} and {found.ndim} dimensions."
        )
    number = float(found)
    if not new_style:
        return Summary(value=[Summary.Value(tag=tag, simple_value=number)])
    plugin = SummaryMetadata.PluginData(plugin_name="scalars")
    data = TensorProto(float_val=[number], dtype="DT_FLOAT")
    metadata = SummaryMetadata(plugin_data=plugin)
    return Summary(value=[Summary.Value(tag=tag, tensor=data, metadata=metadata)])


def _default_bins() -> np.ndarray:
    steps = [1e-12]
    while steps[-1] < 1e20:
        steps.append(steps[-1] * 1.1)
    positive = np.array(steps[:-1])
    return np.concatenate([-positive[::-1], [0.0], positive])


def histogram(tag: str, values: Any, bins: Any, max_bins: int | None = None) -> Summary:
    """How often values lie between limits; `bins` as NumPy has them, or tensorflow."""
    flat = make_np(values).reshape(-1).astype(np.float64)
    if not flat.size:
        raise ValueError("The input has no element.")
    limits = _default_bins() if isinstance(bins, str) and bins == "tensorflow" else bins
    counts, limits = np.histogram(flat, bins=limits)
    if max_bins is not None and len(counts) > max_bins:
        merge = -(-len(counts) // max_bins)
        padded = np.pad(counts, (0, -len(counts) % merge))
        counts = padded.reshape(-1, merge).sum(1)
        limits = np.append(limits[:-1:merge], limits[-1])
    used = np.flatnonzero(counts)
    if not used.size:
        raise ValueError("The histogram is empty, please file a bug report.")
    # From the empty bucket before the first to the last that is used.
    first, last = used[0], used[-1] + 1
    head = [0] if first == 0 else []
    found = HistogramProto(
        min=flat.min(),
        max=flat.max(),
        num=len(flat),
        sum=flat.sum(),
        sum_squares=flat.dot(flat),
        bucket_limit=limits[first : last + 1].tolist(),
        bucket=[*head, *counts[max(first - 1, 0) : last].tolist()],
    )
    return Summary(value=[Summary.Value(tag=tag, histo=found)])


def image(tag: str, values: Any, dataformats: str) -> Summary:
    """One picture; a batch of them side by side."""
    from PIL import Image

    array = make_np(values)
    scale = 1 if array.dtype == np.uint8 else 255
    array = _rows_of_pixels(array, dataformats).astype(np.float32)
    pixels = (array * scale).clip(0, 255).astype(np.uint8)
    height, width, channels = pixels.shape
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG")
    found = Summary.Image(
        height=height,
        width=width,
        colorspace=channels,
        encoded_image_string=buffer.getvalue(),
    )
    return Summary(value=[Summary.Value(tag=tag, image=found)])


def _rows_of_pixels(array: np.ndarray, dataformats: str) -> np.ndarray:
    order = dataformats.upper()
    if len(order) != array.ndim:
        raise AssertionError(
            "size of input tensor and input format are different. tensor shape: "
            f"{array.shape}, input_format: {dataformats}"
        )
    if order == "HW":
        array, order = array[..., None], "HWC"
    if "N" in order:
        array = array.transpose([order.index(c) for c in "NHWC"])
        count, height, width, channels = array.shape
        columns = min(count, 8)
        rows = -(-count // columns)
        grid = np.zeros((rows * columns, height, width, channels), array.dtype)
        grid[:count] = array
        grid = grid.reshape(rows, columns, height, width, channels)
        array = grid.swapaxes(1, 2).reshape(rows * height, columns * width, channels)
    else:
        array = array.transpose([order.index(c) for c in "HWC"])
    return np.repeat(array, 3, axis=2) if array.shape[2] == 1 else array


def text(tag: str, string: str) -> Summary:
    """A text, shown as Markdown."""
    plugin = SummaryMetadata.PluginData(plugin_name="text", content=b"")
    data = TensorProto(
        dtype="DT_STRING",
        string_val=[string.encode("utf_8")],
        tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)]),
    )
    metadata = SummaryMetadata(plugin_data=plugin)
    named = f"{tag}/text_summary"
    return Summary(value=[Summary.Value(tag=named, metadata=metadata, tensor=data)])


def hparams(settings: dict[str, Any], metrics: dict[str, Any]) -> list[Summary]:
    """The messages of a run's settings: experiment, begin and end of the session."""
    from tensorboard.plugins.hparams import summary_v2

    for name, given in (("hparam_dict", settings), ("metric_dict", metrics)):
        if not isinstance(given, dict):
            raise TypeError(
                f"parameter: {name} should be a dictionary, nothing logged."
            )
    plain = {k: _setting(k, v) for k, v in settings.items()}
    names = [summary_v2.Metric(tag) for tag in metrics]
    domains = [summary_v2.HParam(name) for name in plain]
    return [
        summary_v2.hparams_config_pb(domains, names),
        summary_v2.hparams_pb(plain),
    ]


def _setting(name: str, value: Any) -> Any:
    if isinstance(value, Tensor):
        value = value.item()
    if isinstance(value, (bool, int, float, str)):
        return value
    raise ValueError(
        f"value of {name} should be one of int, float, str, bool, or torch.Tensor, got "
        f"{json.dumps(str(type(value)))}"
    )
