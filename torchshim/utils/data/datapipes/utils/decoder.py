"""What a file's name says of its content: functions that decode by extension."""

from __future__ import annotations

import io
import json
import os.path
import pickle
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

import torchshim
from torchshim.utils.data.datapipes.utils.common import StreamWrapper

__all__ = [
    "Decoder",
    "ImageHandler",
    "MatHandler",
    "audiohandler",
    "basichandlers",
    "extension_extract_fn",
    "handle_extension",
    "imagehandler",
    "mathandler",
    "videohandler",
]

Handler = Callable[[str, Any], Any]


def basichandlers(extension: str, data: Any) -> Any:
    """Text, numbers, JSON, pickles and tensors."""
    # As in PyTorch, pieces of these count, too.
    if extension in "txt text transcript":
        return data.decode("utf-8")
    if extension in {"cls", "cls2", "class", "count", "index", "inx", "id"}:
        try:
            return int(data)
        except ValueError:
            return None
    if extension in "json jsn":
        return json.loads(data)
    if extension in {"pyd", "pickle"}:
        return pickle.loads(data)
    if extension == "pt":
        return torchshim.load(io.BytesIO(data))
    return None


def handle_extension(extensions: str, f: Callable[[Any], Any]) -> Handler:
    """A handler that calls `f` for these extensions, written with spaces between."""
    wanted = [each.split(".") for each in extensions.lower().split()]

    def handler(extension: str, data: Any) -> Any:
        given = extension.lower().split(".")
        for target in wanted:
            if given[-len(target) :] == target:
                return f(data)
        return None

    return handler


#: What an `ImageHandler` gives: the kind, the type of elements, the mode of the image.
imagespecs: dict[str, tuple[str, str | None, str]] = {
    **{f"{m}8": ("numpy", "uint8", m) for m in ("l", "rgb", "rgba")},
    **{m: ("numpy", "float", m) for m in ("l", "rgb", "rgba")},
    **{f"torch{m}8": ("torch", "uint8", m) for m in ("l", "rgb", "rgba")},
    **{f"torch{m}": ("torch", "float", m or "rgb") for m in ("l", "rgb", "", "rgba")},
    **{f"pil{m}": ("pil", None, m or "rgb") for m in ("l", "", "rgb", "rgba")},
}


class ImageHandler:
    """Decodes images as one of `imagespecs` says; needs PIL."""

    def __init__(self, imagespec: str) -> None:
        if imagespec not in imagespecs:
            raise AssertionError(f"unknown image specification: {imagespec}")
        self.imagespec = imagespec.lower()

    def __call__(self, extension: str, data: bytes) -> Any:
        if extension.lower() not in {"jpg", "jpeg", "png", "ppm", "pgm", "pbm", "pnm"}:
            return None
        try:
            import PIL.Image
        except ImportError as error:
            raise ModuleNotFoundError(
                "Package `PIL` is required to be installed for default image decoder."
                "Please use `pip install Pillow` to install the package"
            ) from error
        kind, elements, mode = imagespecs[self.imagespec]
        with io.BytesIO(data) as stream:
            image = PIL.Image.open(stream)
            image.load()
            image = image.convert(mode.upper())
        if kind == "pil":
            return image
        values = np.asarray(image)
        if elements == "float":
            values = values.astype(np.float32) / 255.0
        if kind == "numpy":
            return values
        moved = np.array(values.transpose(2, 0, 1) if values.ndim == 3 else values)
        return torchshim.tensor(moved)


def imagehandler(imagespec: str) -> ImageHandler:
    """`ImageHandler`."""
    return ImageHandler(imagespec)


def _read_by_path(read: Callable[[str], Any], extension: str, data: bytes) -> Any:
    """What a function that wants a path gives for a file's content."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"file.{extension}")
        with open(path, "wb") as stream:
            stream.write(data)
        return read(path)


def videohandler(extension: str, data: Any) -> Any:
    """Videos, by torchvision."""
    if extension not in {
        *("mp4", "ogv", "mjpeg", "avi", "mov", "h264", "mpg", "webm", "wmv"),
    }:
        return None
    try:
        import torchvision.io  # type: ignore[import-not-found]
    except ImportError as error:
        raise ModuleNotFoundError(
            "Package `torchvision` is required to be installed for default video file "
            "loader. Please use `pip install torchvision` or `conda install "
            "torchvision -c pytorch`to install the package"
        ) from error
    return _read_by_path(torchvision.io.read_video, extension, data)


def audiohandler(extension: str, data: Any) -> Any:
    """Sounds, by torchaudio."""
    if extension not in {"flac", "mp3", "sox", "wav", "m4a", "ogg", "wma"}:
        return None
    try:
        import torchaudio  # type: ignore[import-not-found]
    except ImportError as error:
        raise ModuleNotFoundError(
            "Package `torchaudio` is required to be installed for default audio file "
            "loader. Please use `pip install torchaudio` or `conda install torchaudio "
            "-c pytorch`to install the package"
        ) from error
    return _read_by_path(torchaudio.load, extension, data)


class MatHandler:
    """Files of MATLAB, by SciPy."""

    def __init__(self, **loadmat_kwargs: Any) -> None:
        try:
            import scipy.io
        except ImportError as error:
            raise ModuleNotFoundError(
                "Package `scipy` is required to be installed for mat file."
                "Please use `pip install scipy` or `conda install scipy`"
                "to install the package"
            ) from error
        self.sio = scipy.io
        self.loadmat_kwargs = loadmat_kwargs

    def __call__(self, extension: str, data: bytes) -> Any:
        if extension != "mat":
            return None
        with io.BytesIO(data) as stream:
            return self.sio.loadmat(stream, **self.loadmat_kwargs)


def mathandler(**loadmat_kwargs: Any) -> MatHandler:
    """`MatHandler`."""
    return MatHandler(**loadmat_kwargs)


def extension_extract_fn(pathname: str) -> str:
    """The last extension of a path, without the point."""
    return os.path.splitext(pathname)[1].removeprefix(".")


class Decoder:
    """Decodes pairs of a path and a file, by the first handler that gives something."""

    def __init__(
        self, *handler: Handler, key_fn: Callable[[str], str] = extension_extract_fn
    ) -> None:
        self.handlers: list[Any] = list(handler) if handler else []
        self.key_fn = key_fn

    def add_handler(self, *handler: Any) -> None:
        """More handlers, asked before the others."""
        self.handlers = [*handler, *self.handlers]

    @staticmethod
    def _is_stream_handle(data: Any) -> bool:
        held = data.file_obj if isinstance(data, StreamWrapper) else data
        return isinstance(held, (io.BufferedIOBase, io.RawIOBase))

    def decode1(self, key: str, data: Any) -> Any:
        """One value; what no handler takes stays."""
        if not data:
            return data
        if self._is_stream_handle(data):
            stream = data
            data = stream.read()
            stream.close()
        for handler in self.handlers:
            found = handler(key, data)
            if found is not None:
                return found
        return data

    def decode(self, data: Any) -> dict[str, Any]:
        """A dict of what a pair, or several, were decoded to."""
        made: dict[str, Any] = {}
        if isinstance(data, tuple):
            data = [data]
        for key, value in data or ():
            if key[0] == "_":
                made[key] = value.decode("utf-8") if isinstance(value, bytes) else value
            else:
                made[key] = self.decode1(self.key_fn(key), value)
        return made

    def __call__(self, data: Any) -> Any:
        return self.decode(data)
