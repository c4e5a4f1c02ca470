"""Utilities: loading data, handles of hooks (``torch.utils``)."""

from torchshim.utils import data as data
from torchshim.utils import hooks as hooks
