"""Parts of `torch.func` that programs name by their place in PyTorch."""

from torchshim._functorch import apis as apis
from torchshim._functorch import autograd_function as autograd_function
from torchshim._functorch import config as config
from torchshim._functorch import eager_transforms as eager_transforms
from torchshim._functorch import vmap as vmap
