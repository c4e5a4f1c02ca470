"""Utilities: loading data, handles of hooks (``torch.utils``)."""

from torchshim.utils import _pytree as _pytree
from torchshim.utils import data as data
from torchshim.utils import hooks as hooks
