"""Padding, resizing and sliding blocks of `nn.functional`."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from torchshim._derived import fns, public
from torchshim._errors import warn
from torchshim._functions._arguments import check_room, kind_of
from torchshim._functions.nn_pooling import Sizes
from torchshim._ops.view_geometry import size_at
from torchshim._refusal import refuse
from torchshim._tensor import Tensor

# Padding -----------------------------------------------------------------------------


def pad(
    input: Tensor, pad: Any, mode: str = "constant", value: float | None = None
) -> Tensor:
    """The last dimensions made longer, last one first.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.pad.html

    >>> import torchshim as torch
    >>> torch.nn.functional.pad(torch.ones(2), (1, 2))
    tensor([0., 1., 1., 0., 0.])
    """
    wrong = not isinstance(input, Tensor) or not isinstance(pad, (tuple, list))
    wrong = wrong or value.__class__ not in (int, float, type(None))
    wrong = wrong or not isinstance(mode, str)
    if wrong or any(size.__class__ is not int for size in pad):
        refuse("nn", "pad", (input, pad, mode, value), {})
    pad = tuple(pad)
    n = input.dim()
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * n and mode != "constant":
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input "
            f"dimension but got padding length {len(pad)} and input of dimension {n}"
        )
    if mode == "constant":
        try:
            return fns.constant_pad_nd(input, pad, 0 if value is None else value)
        except TypeError:
            refuse("nn", "pad", (input, pad, mode, value), {})
            raise
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if (len(pad), n) not in ((2, 2), (2, 3), (4, 3), (4, 4), (6, 4), (6, 5)):
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {n}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    if mode == "circular":
        return fns.pad_around(input, pad)
    return fns.pad_by_index(input, pad, mode)


# Resizing ----------------------------------------------------------------------------

_SMOOTH = {3: ("linear",), 4: ("bilinear", "bicubic", "lanczos"), 5: ("trilinear",)}
_MODES = (
    "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"
)


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Signals, images or volumes of another size.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.interpolate.html

    >>> import torchshim as torch
    >>> x = torch.tensor([[[1.0, 2.0]]])
    >>> torch.nn.functional.interpolate(x, scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: "
                "linear | bilinear | bicubic | trilinear"
            )
    corners = bool(align_corners)
    n = input.dim() - 2
    try:
        sizes, scales = _target(input, n, size, scale_factor)
        if corners is not align_corners and align_corners is not None:
            raise TypeError(f"align_corners must be bool, not {kind_of(align_corners)}")
    except (TypeError, ValueError):
        given = size, align_corners, scale_factor
        _refuse_resizing(input, mode, antialias, n, *given)
        raise
    if recompute_scale_factor and size is not None:
        raise ValueError(
            "recompute_scale_factor is not meaningful with an explicit size."
        )
    if mode == "area" and sizes is None:
        recompute_scale_factor = True
    if recompute_scale_factor:
        sizes, scales = _floors(input, scales), None
    ndim = input.dim()
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes "
            "and "
            "requires a 4-D tensor as input"
        )
    final = tuple(sizes) if sizes is not None else _floors(input, scales)
    used = tuple(scales) if scales is not None else (None,) * n
    if ndim in (3, 4, 5):
        # Indices and weights of each dimension are made before the result.
        if min(final) > 0:
            check_room((*input.shape[:2], *final), input.dtype, input.device)
        if mode in ("nearest", "nearest-exact"):
            return fns.upsample_nearest(input, final, used, mode == "nearest-exact")
        if mode == "area":
            return getattr(fns, f"adaptive_avg_pool{n}d")(input, final)
        if mode in _SMOOTH[ndim]:
            if mode == "lanczos" and corners:
                raise ValueError("Lanczos mode does not support align_corners=True")
            if mode == "lanczos" and not antialias:
                raise ValueError("Lanczos mode requires antialias=True")
            kind = {"bicubic": "cubic", "lanczos": "lanczos"}.get(mode, "linear")
            return fns.upsample_smooth(input, final, used, corners, kind, antialias)
        for needs, modes in _SMOOTH.items():
            if mode in modes and mode in ("linear", "bilinear", "trilinear"):
                raise NotImplementedError(
                    f"Got {ndim}D input, but {mode} mode needs {needs}D input"
                )
    raise NotImplementedError(
        "Input Error: Only 3D, 4D and 5D input Tensors supported (got "
        f"{ndim}D) for the modes: {_MODES} (got {mode})"
    )


@public(namespaces=("ops.aten",))
def _upsample_bilinear2d_aa(
    input: Tensor,
    output_size: Any,
    align_corners: bool,
    scales_h: Any = None,
    scales_w: float | None = None,
    *,
    scale_factors: Any = None,
) -> Tensor:
    """Antialiased bilinear `interpolate`, to a size or by factors."""
    if isinstance(scales_h, (list, tuple)):
        scale_factors = scales_h
    scales = (scales_h, scales_w) if scale_factors is None else tuple(scale_factors)
    size = _floors(input, scales) if output_size is None else tuple(output_size)
    return fns.upsample_smooth(input, size, scales, align_corners, "linear", True)


def _refuse_resizing(
    input: Tensor, mode: str, antialias: bool, n: int, *given: Any
) -> None:
    """What the parser of the function says that PyTorch's `interpolate` calls."""
    size, corners, scales = given
    kind = {"nearest": "upsample_nearest", "nearest-exact": "_upsample_nearest_exact"}
    name = f"{kind.get(mode, f'upsample_{mode}')}{n}d"
    if antialias:
        name = f"_{name}_aa"
    listed = isinstance(size, (tuple, list))
    if n < 1 or listed or (size is None) == (scales is None):
        return
    factors = scales if isinstance(scales, (tuple, list)) else (scales,) * n
    to = None if size is None else [size] * n
    if len(factors) == n:
        between = () if mode in kind else (False if corners is None else corners,)
        by = None if scales is None else list(factors)
        refuse("nn", name, (input, to, *between, by), {})


def _floors(input: Tensor, scales: Any) -> tuple[int, ...]:
    pairs = zip(input.shape[2:], scales, strict=True)
    lengths = [float(s) * f for s, f in pairs]
    if not all(abs(length) < 2**63 for length in lengths):
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    return tuple(map(math.floor, lengths))


def _is_integer(size: Any) -> bool:
    if isinstance(size, Tensor):
        return not size.is_floating_point()
    return isinstance(size, (int, np.integer))


def _target(input: Tensor, n: int, size: Any, scale_factor: Any) -> tuple[Any, Any]:
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if isinstance(size, (tuple, list)):
            if len(size) != n:
                raise ValueError(
                    "Input and output must have the same number of spatial dimensions, "
                    f"but got input with spatial dimensions of {list(input.shape[2:])} "
                    f"and output size of {size}. Please provide input tensor in (N, C, "
                    "d1, d2, ...,dK) format and output size in (o1, o2, ...,oK) format."
                )
            if not all(map(_is_integer, size)):
                raise TypeError(
                    "expected size to be one of int or Tuple[int] or Tuple[int, int] "
                    "or Tuple[int, int, int], but got size with types "
                    f"{[type(s) for s in size]}"
                )
            return tuple(operator.index(s) for s in size), None
        if size.__class__ is bool:
            raise TypeError("size must be int, not bool")
        return (operator.index(size),) * n, None
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if isinstance(scale_factor, (tuple, list)):
        if len(scale_factor) != n:
            raise ValueError(
                "Input and scale_factor must have the same number of spatial "
                "dimensions, but got input with spatial dimensions of "
                f"{list(input.shape[2:])} and scale_factor of shape {scale_factor}. "
                "Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
                "scale_factor in (s1, s2, ...,sK) format."
            )
        return None, tuple(float(s) for s in scale_factor)
    if isinstance(scale_factor, Tensor):
        raise TypeError("scale_factor must be float, not Tensor")
    return None, (float(scale_factor),) * n


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Deprecated: `interpolate`.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.upsample.html

    >>> import torchshim as torch
    >>> torch.nn.functional.upsample(torch.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    _deprecated("upsample", "interpolate")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor, size: Any = None, scale_factor: Any = None
) -> Tensor:
    """Deprecated: `interpolate`.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.upsample_nearest.html

    >>> import torchshim as torch
    >>> torch.nn.functional.upsample_nearest(torch.tensor([[[1.0, 2.0]]]), size=3)
    tensor([[[1., 1., 2.]]])
    """
    _deprecated("upsample_nearest", "interpolate")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(
    input: Tensor, size: Any = None, scale_factor: Any = None
) -> Tensor:
    """Deprecated: `interpolate` with `mode="bilinear"` and aligned corners.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.upsample_bilinear.html

    >>> import torchshim as torch
    >>> x = torch.tensor([[[[1.0, 2.0]]]])
    >>> torch.nn.functional.upsample_bilinear(x, size=(1, 3))
    tensor([[[[1.0000, 1.5000, 2.0000]]]])
    """
    _deprecated("upsample_bilinear", "interpolate")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _deprecated(old: str, new: str) -> None:
    warn(
        f"`nn.functional.{old}` is deprecated. Use `nn.functional.{new}` instead.",
    )


# Sliding blocks ----------------------------------------------------------------------


def _pair(name: str, value: Sizes) -> tuple[int, int]:
    single = isinstance(value, (int, np.integer))
    pair = (int(value), int(value)) if single else tuple(value)
    if len(pair) != 2:
        raise RuntimeError(
            f"It is expected {name} equals to 2, but got size {len(pair)}"
        )
    return pair


def unfold(
    input: Tensor,
    kernel_size: Sizes,
    dilation: Sizes = 1,
    padding: Sizes = 0,
    stride: Sizes = 1,
) -> Tensor:
    """Every block of a batch of images as a column.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.unfold.html

    >>> import torchshim as torch
    >>> torch.nn.functional.unfold(torch.ones(1, 3, 4, 4), 2).shape
    torch.Size([1, 12, 9])
    """
    for dim in (1, 2):
        size_at(input.shape, dim)
    return fns.im2col(
        input,
        _pair("kernel_size", kernel_size),
        _pair("dilation", dilation),
        _pair("padding", padding),
        _pair("stride", stride),
    )


def fold(
    input: Tensor,
    output_size: Sizes,
    kernel_size: Sizes,
    dilation: Sizes = 1,
    padding: Sizes = 0,
    stride: Sizes = 1,
) -> Tensor:
    """Columns put back as blocks of images; where blocks overlap they add up.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.fold.html

    >>> import torchshim as torch
    >>> torch.nn.functional.fold(torch.ones(1, 4, 4), (3, 3), 2)[0, 0]
    tensor([[1., 2., 1.],
            [2., 4., 2.],
            [1., 2., 1.]])
    """
    return fns.col2im(
        input,
        _pair("output_size", output_size),
        _pair("kernel_size", kernel_size),
        _pair("dilation", dilation),
        _pair("padding", padding),
        _pair("stride", stride),
    )
