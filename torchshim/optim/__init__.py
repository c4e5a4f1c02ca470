"""Optimizers and learning rate schedules, as `torch.optim`."""

from torchshim.optim import lr_scheduler as lr_scheduler
from torchshim.optim.adam import Adam as Adam
from torchshim.optim.adamw import AdamW as AdamW
from torchshim.optim.optimizer import Optimizer as Optimizer
from torchshim.optim.sgd import SGD as SGD
