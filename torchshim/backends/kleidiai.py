"""KleidiAI, which is not used: `torch.backends.kleidiai`."""

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether PyTorch was built with KleidiAI: no."""
    return False
