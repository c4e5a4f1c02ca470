"""Short-time Fourier transforms: `stft` and `istft`."""

from __future__ import annotations

import math
from typing import Any

from torchshim._autocast import autocast_whole
from torchshim._core.naming import tensor_type
from torchshim._core.storage import TensorBase
from torchshim._derived import fns, namespace, public
from torchshim._functions._arguments import (
    as_index,
    only_bools,
    tensor_argument,
    warn,
    warn_once,
)
from torchshim._functions.nn_resizing import pad
from torchshim._ops.view_geometry import wrap_dim
from torchshim._parser import combination
from torchshim._tensor import Tensor

_STFT = (
    "(Tensor input, int n_fft, int hop_length = None, int win_length = None, "
    'Tensor window = None, bool center = True, str pad_mode = "reflect", '
    "bool normalized = False, bool onesided = None, bool return_complex = None, "
    "bool align_to_window = None)",
    "(Tensor input, int n_fft, int hop_length = None, int win_length = None, "
    "Tensor window = None, bool normalized = False, bool onesided = None, "
    "bool return_complex = None, bool align_to_window = None)",
)
_NO_WINDOW = (
    "A window was not provided. A rectangular window will be applied,which is "
    "known to cause spectral leakage. Other windows such as torch.hann_window "
    "or torch.hamming_window are recommended to reduce spectral leakage.To "
    "suppress this warning and use a rectangular window, explicitly set "
    "`window=torch.ones(n_fft, device=<device>)`. (Triggered internally at "
    "/__w/pytorch/pytorch/aten/src/ATen/native/SpectralOps.cpp:835.)"
)
_REAL_RESULT = (
    "stft with return_complex=False is deprecated. In a future pytorch "
    "release, stft will return complex tensors for all inputs, and "
    "return_complex=False will raise an error.\nNote: you can still call "
    "torch.view_as_real on the complex output to recover the old return "
    "format. (Triggered internally at "
    "/__w/pytorch/pytorch/aten/src/ATen/native/SpectralOps.cpp:874.)"
)


def _flag(value: Any) -> Any:
    """A truth value as C++ prints it."""
    return value if value is None else int(value)


def _sizes(tensor: Tensor) -> str:
    return f"[{', '.join(map(str, tensor.shape))}]"


def _padded_window(window: Tensor, n_fft: int) -> Tensor:
    """A window in the middle of zeros."""
    left = (n_fft - window.shape[0]) // 2
    right = n_fft - window.shape[0] - left
    return pad(window, (left, right)) if left or right else window


def _is_complex(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor._tmeta.dtype.is_complex


@public(method=True)
@autocast_whole("stft")
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Transforms of overlapping pieces: (…, frequencies, frames), complex.

    https://docs.pytorch.org/docs/2.13/generated/torch.stft.html

    >>> import torchshim as torch
    >>> w = torch.hann_window(4)
    >>> torch.stft(torch.ones(8), 4, window=w, return_complex=True).shape
    torch.Size([3, 9])
    """
    if center and align_to_window is not None:
        raise RuntimeError(
            "stft align_to_window should only be set when center = false"
        )
    ndim = input.dim()
    integers = [n_fft, *(v for v in (hop_length, win_length) if v is not None)]
    flags = normalized, onesided, return_complex, align_to_window
    if (
        any(as_index(v) is None for v in integers)
        or not (window is None or isinstance(window, TensorBase))
        or type(normalized) is not bool
        or not all(v is None or type(v) is bool for v in flags)
    ):
        given = (input, n_fft, hop_length, win_length, window, *flags)
        raise TypeError(combination("stft", _STFT, given, {}))
    if center:
        input = _centered(input, n_fft, pad_mode)
    if window is None:
        warn_once(_NO_WINDOW)
    hop = n_fft >> 2 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    as_complex = return_complex
    if as_complex is None:
        as_complex = _is_complex(input) or _is_complex(window)
    if not as_complex:
        if return_complex is None:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, "
                "and will further require that return_complex=True in a future PyTorch "
                "release."
            )
        warn_once(_REAL_RESULT)
    flags = normalized, onesided, as_complex, align_to_window
    _check_stft(input, window, n_fft, hop, length, flags)
    size = length if not center and align_to_window else n_fft
    x = input if input.dim() == 2 else input.unsqueeze(0)
    x = _windowed(x.unfold(-1, size, hop), window, length, n_fft)
    out = _transforms(x, n_fft, normalized, onesided).transpose_(1, 2)
    if ndim == 1:
        out.squeeze_(0)
    return out if as_complex else fns.view_as_real(out)


def _centered(input: Tensor, n_fft: int, pad_mode: str) -> Tensor:
    """Padded so that frame t is around the value t * hop_length."""
    shape = tuple(input.shape)
    around = int(n_fft // 2)
    x = input.view((1,) * (3 - len(shape)) + shape)
    padded = pad(x, (around, around), pad_mode)
    return padded.view(tuple(padded.shape)[-len(shape) :])


def _windowed(frames: Tensor, window: Tensor | None, length: int, n_fft: int) -> Tensor:
    """Frames times the window, the shorter of them in the middle of zeros."""
    size = frames.shape[-1]
    if window is None and length < n_fft:
        ones = namespace("torch")["ones"]
        window = ones(length, dtype=frames.dtype, device=frames.device)
    if window is not None:
        window = window if size < n_fft else _padded_window(window, n_fft)
        frames = frames * window
    if size < n_fft:
        left = (n_fft - size) // 2
        frames = pad(frames, (left, n_fft - size - left))
    return frames


def _transforms(
    frames: Tensor, n_fft: int, normalized: bool, onesided: bool | None
) -> Tensor:
    half = not _is_complex(frames) if onesided is None else onesided
    scale = 1 / math.sqrt(n_fft) if normalized else 1.0
    if not _is_complex(frames):
        return fns._fft_r2c(frames, (n_fft,), (2,), scale, half)
    if half:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    return fns._fft_c2c(frames, (n_fft,), (2,), scale, True)


def _check_stft(
    input: Tensor,
    window: Tensor | None,
    n_fft: int,
    hop: int,
    length: int,
    flags: tuple[Any, ...],
) -> None:
    def wrong(text: str) -> RuntimeError:
        shown = "None"
        if window is not None:
            shown = f"{tensor_type(window._tmeta.dtype)}{{{_sizes(window)}}}"
        normalized, onesided, as_complex, align = map(_flag, flags)
        return RuntimeError(
            f"stft({tensor_type(input._tmeta.dtype)}{_sizes(input)}, "
            f"n_fft={n_fft}, hop_length={hop}, win_length={length}, window={shown}, "
            f"normalized={normalized}, onesided={onesided}, "
            f"return_complex={as_complex}, align_to_window={align}) : {text}"
        )

    dtype = input._tmeta.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise wrong("expected a tensor of floating point or complex values")
    if dtype.itemsize == 2:
        raise RuntimeError("MKL FFT doesn't support tensors of type: Half")
    if input.dim() not in (1, 2):
        raise wrong("expected a 1D or 2D tensor")
    available = input.shape[-1]
    if not 0 < n_fft <= available:
        raise wrong(f"expected 0 < n_fft < {available}, but got n_fft={length}")
    if hop <= 0:
        raise wrong(f"expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise wrong(f"expected 0 < win_length <= n_fft, but got win_length={length}")
    if window is not None and tuple(window.shape) != (length,):
        raise wrong(
            f"expected a 1D window tensor of size equal to win_length={length}, but "
            f"got window with size {_sizes(window)}"
        )


@public(method=True)
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal of which `stft` with the same arguments gives `input`.

    RuntimeError, at the next read of a value, where the windows leave a gap.
    https://docs.pytorch.org/docs/2.13/generated/torch.istft.html

    >>> import torchshim as torch
    >>> w = torch.hann_window(4)
    >>> s = torch.stft(torch.ones(8), 4, window=w, return_complex=True)
    >>> torch.istft(s, 4, window=w)
    tensor([1., 1., 1., 1., 1., 1., 1., 1.])
    """
    tensor_argument("istft", "input", 1, input)
    only_bools(center, normalized, return_complex, onesided is not None and onesided)
    if window is not None:
        tensor_argument("istft", "window", 0, window)
    else:
        warn_once(
            "A window was not provided. A rectangular window will be applied.Please "
            "provide the same window used by stft to make the inversion lossless.To "
            "suppress this warning and use a rectangular window, explicitly set "
            "`window=torch.ones(n_fft, device=<device>)`. (Triggered internally at "
            "/__w/pytorch/pytorch/aten/src/ATen/native/SpectralOps.cpp:1035.)"
        )
    hop = n_fft >> 2 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    call = _istft_call(
        input,
        window,
        (n_fft, hop, width, center, normalized, onesided, length, return_complex),
    )
    _check_istft(input, window, call, n_fft, hop, width, onesided, return_complex)
    dtype = input._tmeta.dtype
    given = window
    if given is None:
        given = namespace("torch")["ones"](
            width, dtype=dtype.to_real(), device=input.device
        )
    weight = _padded_window(given, n_fft)
    x = input if input.dim() == 3 else input.unsqueeze(0)
    x = x.transpose(1, 2)
    scale = 1 / math.sqrt(n_fft) if normalized else 1 / n_fft
    if return_complex:
        x = fns._fft_c2c(x, (n_fft,), (2,), scale, False)
    else:
        x = fns._fft_c2r(x, (n_fft,), (2,), scale, False)
    whole = n_fft + hop * (x.shape[1] - 1)
    start = n_fft // 2 if center else 0
    end = whole - start if length is None else start + length
    shown = slice(start, min(end, whole))
    weights = (weight * weight).expand(1, x.shape[1], n_fft)
    signal = fns._overlap_add(x * weight, hop)[:, shown]
    envelope = fns._overlap_add(weights, hop)[:, shown]
    if not envelope.shape[1]:
        raise RuntimeError(
            "min(): Expected reduction dim to be specified for input.numel() == 0. "
            "Specify the reduction dim with the 'dim' argument."
        )
    out = fns._without_gaps(signal, envelope, call)
    if input.dim() == 2:
        out = out.squeeze(0)
    if end > whole:
        warn(
            "The length of signal is shorter than the length parameter. Result is "
            "being padded with zeros in the tail. Please check your center and "
            "hop_length settings. (Triggered internally at "
            "/__w/pytorch/pytorch/aten/src/ATen/native/SpectralOps.cpp:1144.)"
        )
        out = pad(out, (0, end - whole))
    return out


def _istft_call(
    input: Tensor, window: Tensor | None, arguments: tuple[Any, ...]
) -> str:
    """The call as PyTorch's errors show it."""
    n_fft, hop, width, center, normalized, onesided, length, as_complex = arguments
    shown = "None"
    if window is not None:
        shown = f"{tensor_type(window._tmeta.dtype)}{{{_sizes(window)}}}"
    return (
        f"istft({tensor_type(input._tmeta.dtype)}{_sizes(input)}, n_fft={n_fft}, "
        f"hop_length={hop}, win_length={width}, window={shown}, "
        f"center={_flag(center)}, normalized={_flag(normalized)}, "
        f"onesided={_flag(onesided)}, length={length}, "
        f"return_complex={_flag(as_complex)})"
    )


def _check_istft(
    input: Tensor,
    window: Tensor | None,
    call: str,
    n_fft: int,
    hop: int,
    width: int,
    onesided: bool | None,
    as_complex: bool,
) -> None:
    if not _is_complex(input):
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from "
            "stft with return_complex=True."
        )
    shape = tuple(input.shape)
    if 0 in shape:
        raise RuntimeError(f"{call} : input tensor cannot be empty.")
    if len(shape) not in (2, 3):
        # PyTorch looks for the dimensions before it counts them.
        wrap_dim(-3, len(shape) + 1)
        raise RuntimeError(
            f"{call} : expected a tensor with 2 or 3 dimensions, but got {len(shape)}"
        )
    bins = shape[-2]
    half = onesided if onesided is not None else bins != n_fft
    if half and bins != n_fft // 2 + 1:
        raise RuntimeError(
            f"{call} : expected the frequency dimension (3rd to the last) of the input "
            f"tensor to match n_fft / 2 + 1 when onesided=True, but got {bins}"
        )
    if not half and bins != n_fft:
        raise RuntimeError(
            f"{call} : expected the frequency dimension (3rd to the last) of the input "
            f"tensor to match n_fft when onesided=False, but got {bins}"
        )
    if not 0 < hop <= width:
        raise RuntimeError(f"{call} : expected 0 < hop_length <= win_length")
    if not 0 < width <= n_fft:
        raise RuntimeError(f"{call} : expected 0 < win_length <= n_fft")
    if window is not None and tuple(window.shape) != (width,):
        raise RuntimeError(
            f"{call} : Invalid window shape. window has to be 1D and length of "
            "`win_length`"
        )
    if as_complex and half:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if not as_complex and _is_complex(window):
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
