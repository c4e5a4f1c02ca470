"""Values as NumPy arrays (`torch.utils.tensorboard._convert_np`)."""

from torchshim.utils.tensorboard._utils import make_np

__all__ = ["make_np"]
