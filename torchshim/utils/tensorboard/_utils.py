"""Values, pictures and figures as the arrays that event files are made of."""

# pyright: reportMissingImports=false

from __future__ import annotations

import io
from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._tensor import Tensor


def make_np(x: Any) -> np.ndarray:
    """A tensor, array or number as a NumPy array; NotImplementedError for the rest."""
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    if isinstance(x, Tensor):
        if x.device.type == "meta":
            return np.random.randn(1)
        plain = x.to(dtypes.float16) if x.dtype is dtypes.bfloat16 else x
        return plain.detach().cpu().numpy()
    raise NotImplementedError(
        f"Got {type(x)}, but numpy array or torch tensor are expected."
    )


def _calc_scale_factor(array: np.ndarray) -> int:
    """What takes the numbers of a picture to 0 ... 255."""
    return 1 if array.dtype == np.uint8 else 255


def bytes_of(array: np.ndarray) -> np.ndarray:
    """A picture or video as bytes."""
    scale = _calc_scale_factor(array)
    return (array.astype(np.float32) * scale).clip(0, 255).astype(np.uint8)


def make_grid(I: Any, ncols: int = 8) -> np.ndarray:  # noqa: E741
    """Pictures (N, 1 or 3, H, W) side by side: (3, H', W')."""
    if not isinstance(I, np.ndarray):
        raise AssertionError("plugin error, should pass numpy array here")
    if I.shape[1] == 1:
        I = np.concatenate([I, I, I], 1)  # noqa: E741
    if I.ndim != 4 or I.shape[1] != 3:
        raise AssertionError("Input should be a 4D numpy array with 3 channels")
    count, _, height, width = I.shape
    columns = min(count, ncols)
    rows = -(-count // columns)
    grid = np.zeros((rows * columns, 3, height, width), I.dtype)
    grid[:count] = I
    grid = grid.reshape(rows, columns, 3, height, width).transpose(2, 0, 3, 1, 4)
    return grid.reshape(3, rows * height, columns * width)


def convert_to_HWC(tensor: np.ndarray, input_format: str) -> np.ndarray:
    """A picture, or a batch of them, with its channels last."""
    if len(set(input_format)) != len(input_format):
        raise AssertionError(
            f"You can not use the same dimension shorthand twice. "
            f"            input_format: {input_format}"
        )
    if len(tensor.shape) != len(input_format):
        raise AssertionError(
            f"size of input tensor and input format are different. "
            f"        tensor shape: {tensor.shape}, input_format: {input_format}"
        )
    order = input_format.upper()

    def arranged(wanted: str) -> np.ndarray:
        return tensor.transpose([order.find(each) for each in wanted])

    if len(order) == 4:
        return make_grid(arranged("NCHW")).transpose(1, 2, 0)
    if len(order) == 3:
        found = arranged("HWC")
        return np.repeat(found, 3, 2) if found.shape[2] == 1 else found
    if len(order) == 2:
        return np.stack([arranged("HW")] * 3, 2)
    # PyTorch falls off the end of its function here, and fails on the None.
    raise TypeError("cannot unpack non-iterable NoneType object")


def _prepare_video(video: np.ndarray) -> np.ndarray:
    """Videos (N, T, C, H, W) in a grid: (T, H', W', C)."""
    count, frames, channels, height, width = video.shape
    if video.dtype == np.uint8:
        video = video.astype(np.float32) / 255.0
    places = count
    if count == 0 or count & (count - 1):
        places = 2 ** count.bit_length()
        missing = np.zeros((places - count, *video.shape[1:]))
        video = np.concatenate((video, missing), 0)
    rows = 2 ** ((count.bit_length() - 1) // 2)
    columns = places // rows
    grid = video.reshape(rows, columns, frames, channels, height, width)
    grid = grid.transpose(2, 0, 4, 1, 5, 3)
    return grid.reshape(frames, rows * height, columns * width, channels)


def png(pixels: np.ndarray, size: tuple[int, int] | None = None) -> bytes:
    """A picture (H, W, C) of bytes as a PNG file. Needs pillow."""
    from PIL import Image

    return saved(Image.fromarray(pixels), size)


def saved(picture: Any, size: tuple[int, int] | None = None) -> bytes:
    """A picture of pillow's as a PNG file."""
    from PIL import Image

    if size is not None:
        picture = picture.resize(size, Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG")
    return buffer.getvalue()


def figure_to_image(figures: Any, close: bool = True) -> np.ndarray:
    """A figure of matplotlib as a picture (3, H, W); a list of them as a batch."""
    import matplotlib.pyplot as plt
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    if isinstance(figures, list):
        return np.stack([figure_to_image(figure, close) for figure in figures])
    canvas = FigureCanvasAgg(figures)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3]
    if close:
        plt.close(figures)
    return np.moveaxis(pixels, 2, 0)
