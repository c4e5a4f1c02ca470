"""Optimizers and learning rate schedules, as `torch.optim`."""

from torchshim.optim import lr_scheduler as lr_scheduler
from torchshim.optim.adadelta import Adadelta as Adadelta
from torchshim.optim.adagrad import Adagrad as Adagrad
from torchshim.optim.adam import Adam as Adam
from torchshim.optim.adamax import Adamax as Adamax
from torchshim.optim.adamw import AdamW as AdamW
from torchshim.optim.asgd import ASGD as ASGD
from torchshim.optim.nadam import NAdam as NAdam
from torchshim.optim.optimizer import Optimizer as Optimizer
from torchshim.optim.radam import RAdam as RAdam
from torchshim.optim.rmsprop import RMSprop as RMSprop
from torchshim.optim.rprop import Rprop as Rprop
from torchshim.optim.sgd import SGD as SGD
