"""What event files hold: TensorBoard's `Summary` messages, made of tensors and arrays.

https://docs.pytorch.org/docs/2.13/tensorboard.html
"""

# pyright: reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

import io
import json
import logging
import struct
import tempfile
import wave
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tensorboard.compat.proto.summary_pb2 import (
    HistogramProto,
    Summary,
    SummaryMetadata,
)
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

from torchshim._core import dtypes
from torchshim._derived import fns
from torchshim._functions.construct import as_tensor
from torchshim._tensor import Tensor
from torchshim.utils.tensorboard._hparams import hparams
from torchshim.utils.tensorboard._utils import (
    _calc_scale_factor,
    _prepare_video,
    bytes_of,
    convert_to_HWC,
    make_np,
    png,
    saved,
)

__all__ = [
    "audio",
    "compute_curve",
    "custom_scalars",
    "draw_boxes",
    "half_to_int",
    "histogram",
    "histogram_raw",
    "hparams",
    "image",
    "image_boxes",
    "int_to_half",
    "make_histogram",
    "make_image",
    "make_video",
    "mesh",
    "pr_curve",
    "pr_curve_raw",
    "scalar",
    "tensor_proto",
    "text",
    "video",
]

logger = logging.getLogger(__name__)
# Curves of more points cannot be shown.
_MOST_THRESHOLDS = 127


def _summary(tag: str, **value: Any) -> Summary:
    return Summary(value=[Summary.Value(tag=tag, **value)])


def _metadata(plugin: str, content: bytes = b"") -> SummaryMetadata:
    data = SummaryMetadata.PluginData(plugin_name=plugin, content=content)
    return SummaryMetadata(plugin_data=data)


def _shape(sizes: Sequence[int]) -> TensorShapeProto:
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in sizes])


# Numbers and tensors ------------------------------------------------------------------


def half_to_int(f: float) -> int:
    """The bits of a number in float32, as an integer."""
    return struct.unpack("i", struct.pack("f", f))[0]


def int_to_half(i: int) -> float:
    """The number of which `half_to_int` gave the bits."""
    return struct.unpack("f", struct.pack("i", i))[0]


def scalar(
    name: str,
    tensor: Any,
    collections: Any = None,
    new_style: bool = False,
    double_precision: bool = False,
) -> Summary:
    """One number; `new_style` writes it as a tensor, of double precision if asked."""
    found = make_np(tensor).squeeze()
    if found.ndim != 0:
        raise AssertionError(
            "Tensor should contain one element (0 dimensions).             Was given "
            f"size: {found.size} and {found.ndim} dimensions."
        )
    number = float(found)
    if not new_style:
        return _summary(name, simple_value=number)
    if double_precision:
        data = TensorProto(double_val=[number], dtype="DT_DOUBLE")
    else:
        data = TensorProto(float_val=[number], dtype="DT_FLOAT")
    return _summary(name, tensor=data, metadata=_metadata("scalars"))


def _numbers(tensor: Tensor) -> list[Any]:
    return tensor.flatten().tolist()


def _bits(tensor: Tensor) -> list[int]:
    return [half_to_int(each) for each in _numbers(tensor)]


def _pairs(tensor: Tensor) -> list[float]:
    return fns.view_as_real(tensor).flatten().tolist()


# The type and the field that numbers of a dtype are written to.
_FIELDS: dict[Any, tuple[str, str, Callable[[Tensor], list[Any]]]] = {
    dtypes.float16: ("DT_HALF", "half_val", _bits),
    dtypes.bfloat16: ("DT_BFLOAT16", "half_val", _bits),
    dtypes.float32: ("DT_FLOAT", "float_val", _numbers),
    dtypes.float64: ("DT_DOUBLE", "double_val", _numbers),
    dtypes.int8: ("DT_INT8", "int_val", _numbers),
    dtypes.uint8: ("DT_UINT8", "uint32_val", _numbers),
    dtypes.int16: ("DT_INT16", "int_val", _numbers),
    dtypes.int32: ("DT_INT32", "int_val", _numbers),
    dtypes.int64: ("DT_INT64", "int64_val", _numbers),
    dtypes.complex64: ("DT_COMPLEX64", "scomplex_val", _pairs),
    dtypes.complex128: ("DT_COMPLEX128", "dcomplex_val", _pairs),
    dtypes.bool_: ("DT_BOOL", "bool_val", _numbers),
}


def tensor_proto(tag: str, tensor: Tensor) -> Summary:
    """A whole tensor; ValueError where it has 2 GiB or an unsupported dtype."""
    if tensor.numel() * tensor.itemsize >= 1 << 31:
        raise ValueError(
            "tensor is bigger than protocol buffer's hard limit of 2GB in size"
        )
    if tensor.dtype not in _FIELDS:
        raise ValueError(f"{tag} has unsupported tensor dtype {tensor.dtype}")
    kind, field, values = _FIELDS[tensor.dtype]
    data = TensorProto(
        dtype=kind, tensor_shape=_shape(tensor.shape), **{field: values(tensor)}
    )
    return _summary(tag, metadata=_metadata("tensor"), tensor=data)


def text(tag: str, text: str) -> Summary:
    """A text, shown as Markdown."""
    data = TensorProto(
        dtype="DT_STRING",
        string_val=[text.encode(encoding="utf_8")],
        tensor_shape=_shape([1]),
    )
    metadata = _metadata("text", TextPluginData(version=0).SerializeToString())
    return _summary(tag + "/text_summary", metadata=metadata, tensor=data)


# Histograms and curves ----------------------------------------------------------------


def histogram_raw(
    name: str,
    min: Any,
    max: Any,
    num: Any,
    sum: Any,
    sum_squares: Any,
    bucket_limits: Any,
    bucket_counts: Any,
) -> Summary:
    """A histogram that was counted elsewhere."""
    found = HistogramProto(
        min=min,
        max=max,
        num=num,
        sum=sum,
        sum_squares=sum_squares,
        bucket_limit=bucket_limits,
        bucket=bucket_counts,
    )
    return _summary(name, histo=found)


def histogram(
    name: str, values: Any, bins: Any, max_bins: int | None = None
) -> Summary:
    """How often values lie between limits, which `bins` gives as NumPy has them."""
    array = make_np(values).astype(float)
    return _summary(name, histo=make_histogram(array, bins, max_bins))


def make_histogram(
    values: np.ndarray, bins: Any, max_bins: int | None = None
) -> HistogramProto:
    """The counts, from the empty bucket before the first to the last that is used."""
    if values.size == 0:
        raise ValueError("The input has no element.")
    values = values.reshape(-1)
    counts, limits = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        merged = len(counts) // max_bins
        rest = len(counts) % merged
        counts = np.pad(counts, (0, merged - rest if rest else 0))
        counts = counts.reshape(-1, merged).sum(axis=-1)
        # As PyTorch does: a last bucket that merges fewer reaches to the last limit.
        limits = np.append(limits[:-1:merged], limits[-1])
    used = np.flatnonzero(counts)
    # Where no bucket is used, PyTorch shows the last, if it is also the first.
    first, end = (used[0], used[-1] + 1) if used.size else (len(counts), 1)
    shown = [0, *counts[:end]] if first == 0 else counts[first - 1 : end]
    limits = limits[first : end + 1]
    if not len(shown) or not limits.size:
        raise ValueError("The histogram is empty, please file a bug report.")
    return HistogramProto(
        min=values.min(),
        max=values.max(),
        num=len(values),
        sum=values.sum(),
        sum_squares=values.dot(values),
        bucket_limit=limits.tolist(),
        bucket=[float(each) for each in shown],
    )


def _curve(tag: str, data: np.ndarray, num_thresholds: int) -> Summary:
    content = PrCurvePluginData(version=0, num_thresholds=num_thresholds)
    tensor = TensorProto(
        dtype="DT_FLOAT",
        float_val=data.reshape(-1).tolist(),
        tensor_shape=_shape(data.shape[:2]),
    )
    metadata = _metadata("pr_curves", content.SerializeToString())
    return _summary(tag, metadata=metadata, tensor=tensor)


def pr_curve_raw(
    tag: str,
    tp: Any,
    fp: Any,
    tn: Any,
    fn: Any,
    precision: Any,
    recall: Any,
    num_thresholds: int = 127,
    weights: Any = None,
) -> Summary:
    """Precision and recall that were counted elsewhere; at most 127 thresholds."""
    data = np.stack((tp, fp, tn, fn, precision, recall))
    return _curve(tag, data, min(num_thresholds, _MOST_THRESHOLDS))


def pr_curve(
    tag: str,
    labels: np.ndarray,
    predictions: np.ndarray,
    num_thresholds: int = 127,
    weights: Any = None,
) -> Summary:
    """Precision and recall of predictions; at most 127 thresholds."""
    count = min(num_thresholds, _MOST_THRESHOLDS)
    data = compute_curve(labels, predictions, num_thresholds=count, weights=weights)
    return _curve(tag, data, count)


def compute_curve(
    labels: Any, predictions: Any, num_thresholds: Any = None, weights: Any = None
) -> np.ndarray:
    """True and false positives and negatives, precision and recall, by threshold."""
    least = 1e-7
    weights = 1.0 if weights is None else weights
    place = np.int32(np.floor(predictions * (num_thresholds - 1)))
    right = labels.astype(np.float64)

    def at_least(given: Any) -> np.ndarray:
        """Sums of what lies at or above each threshold."""
        limits = (0, num_thresholds - 1)
        found, _ = np.histogram(place, num_thresholds, limits, weights=given)
        return np.cumsum(found[::-1])[::-1]

    tp, fp = at_least(right * weights), at_least((1.0 - right) * weights)
    tn, fn = fp[0] - fp, tp[0] - tp
    precision = tp / np.maximum(least, tp + fp)
    recall = tp / np.maximum(least, tp + fn)
    return np.stack((tp, fp, tn, fn, precision, recall))


def custom_scalars(layout: dict[str, dict[str, Any]]) -> Summary:
    """Charts of several series: `{category: {title: ["Multiline", tags]}}`."""
    categories = []
    for category, charts in layout.items():
        made = []
        for title, chart in charts.items():
            kind, tags = chart[0], chart[1]
            if kind == "Margin":
                if len(tags) != 3:
                    raise AssertionError("len(tags) != 3")
                series = layout_pb2.MarginChartContent.Series(
                    value=tags[0], lower=tags[1], upper=tags[2]
                )
                content = layout_pb2.MarginChartContent(series=[series])
                made.append(layout_pb2.Chart(title=title, margin=content))
            else:
                content = layout_pb2.MultilineChartContent(tag=tags)
                made.append(layout_pb2.Chart(title=title, multiline=content))
        categories.append(layout_pb2.Category(title=category, chart=made))
    found = layout_pb2.Layout(category=categories)
    data = TensorProto(
        dtype="DT_STRING",
        string_val=[found.SerializeToString()],
        tensor_shape=TensorShapeProto(),
    )
    metadata = _metadata("custom_scalars")
    return _summary("custom_scalars__config__", tensor=data, metadata=metadata)


# Pictures, videos, sounds, meshes -----------------------------------------------------


def image(
    tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW"
) -> Summary:
    """One picture; a batch of them side by side. Bytes, or numbers from 0 to 1."""
    pixels = bytes_of(convert_to_HWC(make_np(tensor), dataformats))
    return _summary(tag, image=make_image(pixels, rescale=rescale))


def image_boxes(
    tag: str,
    tensor_image: Any,
    tensor_boxes: Any,
    rescale: float = 1,
    dataformats: str = "CHW",
    labels: Any = None,
) -> Summary:
    """A picture with boxes drawn in it."""
    array = convert_to_HWC(make_np(tensor_image), dataformats)
    scaled = array.astype(np.float32) * _calc_scale_factor(array)
    pixels = scaled.clip(0, 255).astype(np.uint8)
    boxes = make_np(tensor_boxes)
    found = make_image(pixels, rescale=rescale, rois=boxes, labels=labels)
    return _summary(tag, image=found)


def draw_boxes(disp_image: Any, boxes: np.ndarray, labels: Any = None) -> Any:
    """Draws boxes (N, 4), each as left, top, right, bottom, into a pillow picture."""
    from PIL import ImageDraw, ImageFont

    font = ImageFont.load_default()
    draw = ImageDraw.Draw(disp_image)
    for i in range(boxes.shape[0]):
        left, top, right, bottom = boxes[i][:4]
        corners = [(left, top), (left, bottom), (right, bottom), (right, top)]
        draw.line([*corners, (left, top)], width=2, fill="Red")
        if labels is not None and labels[i]:
            x0, y0, x1, y1 = font.getbbox(labels[i])
            width, height = x1 - x0, y1 - y0
            margin = np.ceil(0.05 * height)
            above = bottom - height
            draw.rectangle(
                [(left, above - 2 * margin), (left + width, bottom)], fill="Red"
            )
            place = (left + margin, above - margin)
            draw.text(place, labels[i], fill="black", font=font)
    return disp_image


def make_image(
    tensor: np.ndarray, rescale: float = 1, rois: Any = None, labels: Any = None
) -> Summary.Image:
    """A picture (H, W, C) of bytes as a PNG file in a message."""
    from PIL import Image

    height, width, channels = tensor.shape
    size = int(width * rescale), int(height * rescale)
    if rois is None:
        encoded = png(tensor, size)
    else:
        drawn = draw_boxes(Image.fromarray(tensor), rois, labels=labels)
        encoded = saved(drawn, size)
    return Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=encoded
    )


def video(tag: str, tensor: Any, fps: float = 4) -> Summary:
    """Videos (N, T, C, H, W) side by side, as a GIF. Needs moviepy."""
    pixels = bytes_of(_prepare_video(make_np(tensor)))
    return _summary(tag, image=make_video(pixels, fps))


def make_video(tensor: np.ndarray, fps: float) -> Summary.Image | None:
    """Frames (T, H, W, C) of bytes as a GIF; says so and gives None without moviepy."""
    try:
        import moviepy  # noqa: F401
    except ImportError:
        print("add_video needs package moviepy")
        return None
    try:
        from moviepy import editor
    except ImportError:
        print(
            "moviepy is installed, but can't import moviepy.editor.",
            "Some packages could be missing [imageio, requests]",
        )
        return None
    _, height, width, channels = tensor.shape
    clip = editor.ImageSequenceClip(list(tensor), fps=fps)
    with tempfile.NamedTemporaryFile(suffix=".gif") as file:
        # What silences it depends on moviepy's version.
        for quiet in ({"logger": None}, {"progress_bar": False}, {}):
            try:
                clip.write_gif(file.name, verbose=False, **quiet)
                break
            except TypeError:
                if not quiet:
                    raise
        file.seek(0)
        encoded = file.read()
    return Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=encoded
    )


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Summary:
    """A sound of one channel: numbers from -1 to 1; what is louder is clipped."""
    array = make_np(tensor).squeeze()
    if abs(array).max() > 1:
        print("warning: audio amplitude out of range, auto clipped.")
        array = array.clip(-1, 1)
    if array.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    samples = (array * np.iinfo(np.int16).max).astype("<i2")
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(samples.tobytes())
    found = Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=samples.shape[-1],
        encoded_audio_string=buffer.getvalue(),
        content_type="audio/wav",
    )
    return _summary(tag, audio=found)


def mesh(
    tag: str,
    vertices: Any,
    colors: Any,
    faces: Any,
    config_dict: Any,
    display_name: Any = None,
    description: Any = None,
) -> Summary:
    """Points (N, V, 3) with colours of the same shape, and triangles (N, F, 3)."""
    from tensorboard.plugins.mesh import metadata
    from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData

    config = "{}" if config_dict is None else json.dumps(config_dict, sort_keys=True)
    given = [
        (tensor, kind)
        for tensor, kind in (
            (vertices, MeshPluginData.VERTEX),
            (faces, MeshPluginData.FACE),
            (colors, MeshPluginData.COLOR),
        )
        if tensor is not None
    ]
    components = metadata.get_components_bitmask([kind for _, kind in given])
    values = []
    for tensor, kind in given:
        tensor = as_tensor(tensor)
        about = metadata.create_summary_metadata(
            tag,
            display_name,
            kind,
            components,
            tensor.shape,
            description,
            json_config=config,
        )
        data = TensorProto(
            dtype="DT_FLOAT",
            float_val=tensor.reshape(-1).tolist(),
            tensor_shape=_shape([tensor.shape[i] for i in range(3)]),
        )
        name = metadata.get_instance_name(tag, kind)
        values.append(Summary.Value(tag=name, tensor=data, metadata=about))
    return Summary(value=values)
