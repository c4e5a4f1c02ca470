"""OpenMP, which is not used: `torch.backends.openmp`."""

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether PyTorch was built with OpenMP: no."""
    return False
