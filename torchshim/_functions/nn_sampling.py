"""Sampling by grids and pooling by random windows, of `nn.functional`."""

from __future__ import annotations

from typing import Any

from torchshim._derived import fns, public
from torchshim._errors import warn
from torchshim._functions._arguments import wrong
from torchshim._functions._family import described
from torchshim._functions.random import rand
from torchshim._refusal import refuse
from torchshim._tensor import Tensor

GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def _corners(align_corners: bool | None) -> bool:
    if align_corners is not None:
        return align_corners
    warn(
        "Default grid_sample and affine_grid behavior has changed to "
        "align_corners=False since 1.3.0. Please specify align_corners=True if the old "
        "behavior is desired. See the documentation of grid_sample for details.",
    )
    return False


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The values of images, or volumes, at the points of a grid.

    Points are in [-1, 1], the last dimension first; `padding_mode` decides what lies
    outside. ValueError for unknown modes.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.grid_sample.html

    >>> import torchshim as torch
    >>> image = torch.tensor([[[[1.0, 3.0]]]])
    >>> centre = torch.zeros(1, 1, 1, 2)
    >>> torch.nn.functional.grid_sample(image, centre, align_corners=True)
    tensor([[[[2.]]]])
    """
    if mode not in GRID_SAMPLE_INTERPOLATION_MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or "
            f"'bicubic', but got: '{mode}'"
        )
    if padding_mode not in GRID_SAMPLE_PADDING_MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', "
            f"'border', or 'reflection', but got: '{padding_mode}'"
        )
    corners = _corners(align_corners)
    modes = (
        GRID_SAMPLE_INTERPOLATION_MODES[mode],
        GRID_SAMPLE_PADDING_MODES[padding_mode],
    )
    if corners.__class__ is not bool:
        refuse("torch", "grid_sampler", (input, grid, *modes, corners), {})
    return fns.grid_sampler(input, grid, *modes, corners)


def _grid_sampler(n: int, name: str) -> None:
    def sampler(
        input: Tensor,
        grid: Tensor,
        interpolation_mode: int,
        padding_mode: int,
        align_corners: bool,
    ) -> Tensor:
        """`nn.functional.grid_sample`, with its modes by number.

        RuntimeError for an input of other dimensions.

        >>> import torchshim as torch
        >>> image = torch.tensor([[[[1.0, 3.0]]]])
        >>> torch.grid_sampler_2d(image, torch.zeros(1, 1, 1, 2), 0, 0, False)
        tensor([[[[2.]]]])
        """
        given = input, grid, interpolation_mode, padding_mode, align_corners
        if not isinstance(input, Tensor) or not isinstance(grid, Tensor):
            return fns.grid_sampler(*given)  # raises
        ndim = input.dim()
        if ndim != n + 2 and grid.dim() == ndim and grid.size(-1) == ndim - 2:
            raise RuntimeError(
                f"grid_sampler(): expected {n + 2}D input and grid with same number of "
                f"dimensions, but got input with sizes {list(input.shape)} and grid "
                f"with sizes {list(grid.shape)}"
            )
        return fns.grid_sampler(*given)

    described(sampler, name, f"`grid_sampler` in {n} dimensions.")
    public(sampler)


_grid_sampler(2, "grid_sampler_2d")
_grid_sampler(2, "_grid_sampler_2d_cpu_fallback")
_grid_sampler(3, "grid_sampler_3d")


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """The grid of points to which affine maps take images of a size.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.affine_grid.html

    >>> import torchshim as torch
    >>> turn = torch.tensor([[[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]])
    >>> torch.nn.functional.affine_grid(turn, (1, 1, 1, 2), align_corners=False)
    tensor([[[[ 0.0000, -0.5000],
              [ 0.0000,  0.5000]]]])
    """
    corners = _corners(align_corners)
    if not theta.is_floating_point():
        raise ValueError(
            f"Expected theta to have floating point type, but got {theta.dtype}"
        )
    n = len(size) - 2
    if n not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine "
            f"transforms, respectively. Got size {size}."
        )
    if theta.dim() != 3 or theta.shape[-2:] != (n, n + 1):
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size "
            f"{size}. Got {theta.shape}."
        )
    if corners and min(size[2:]) == 1:
        warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids "
            "when align_corners=True. This is not an intended use case of affine_grid. "
            "See the documentation of affine_grid for details.",
        )
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    if not isinstance(size, (tuple, list)) or corners.__class__ is not bool:
        refuse("torch", "affine_grid_generator", (theta, size, corners), {})
    return fns.affine_grid_generator(theta, tuple(size), corners)


def _fraction(name: str, input: Tensor, n: int, ratio: Any) -> list[int]:
    """The last `n` sizes times a ratio, or one for each of them."""
    if ratio is None:
        raise ValueError(
            f"{name} requires specifying either an output_size or an output_ratio"
        )
    if n == 2 and len(ratio) > 2:
        raise ValueError(
            f"{name} requires output_ratio to either be a single Int or tuple of Ints."
        )
    scalar = isinstance(ratio, (int, float))
    ratios = (ratio,) * n if scalar else ratio
    return [int(input.size(d - n) * ratios[d]) for d in range(n)]


def _fractional(n: int) -> Any:
    name = f"fractional_max_pool{n}d"

    def with_indices(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """They are int64: positions in a channel, as if it had one dimension.

        >>> import torchshim as torch
        >>> x = torch.tensor([[[1.0, 2.0], [4.0, 3.0]]])
        >>> torch.nn.functional.fractional_max_pool2d_with_indices(x, 2, output_size=1)
        (tensor([[[4.]]]), tensor([[[2]]]))
        """
        if output_size is None:
            output_size = _fraction(name, input, n, output_ratio)
        if isinstance(output_size, bool):
            raise TypeError(wrong(name, "output_size", 3, "tuple of ints", output_size))
        if _random_samples is None:
            batch = 1 if input.dim() == n + 1 else input.size(0)
            _random_samples = rand(
                batch, input.size(-n - 1), n, dtype=input.dtype, device=input.device
            )
        kernel, size = (
            tuple(v) if isinstance(v, list) else v for v in (kernel_size, output_size)
        )
        return fns.fractional_max_pool(input, kernel, size, _random_samples, n)

    def pool(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        """The result has the size `output_size`, or `output_ratio` times the input's.

        ValueError if neither is given. By Graham, https://arxiv.org/abs/1412.6071

        >>> import torchshim as torch
        >>> x = torch.ones(4, 9, 9)
        >>> F = torch.nn.functional
        >>> F.fractional_max_pool2d(x, 2, output_ratio=(0.7, 0.5)).shape
        torch.Size([4, 6, 4])
        """
        found = with_indices(
            input, kernel_size, output_size, output_ratio, True, _random_samples
        )
        return found if return_indices else found[0]

    page = f"torch.nn.functional.{name}"
    described(pool, name, "The largest elements of windows at random places.", page)
    line = f"`{name}`, and where the elements stand."
    described(with_indices, f"{name}_with_indices", line, page)
    return pool, with_indices


fractional_max_pool2d, fractional_max_pool2d_with_indices = _fractional(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _fractional(3)
