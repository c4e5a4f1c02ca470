"""Optimizers and learning rate schedules, as `torch.optim`."""

from types import ModuleType as _ModuleType

from torchshim._lazy import submodules as _submodules
from torchshim.optim import lr_scheduler as lr_scheduler
from torchshim.optim import swa_utils as swa_utils
from torchshim.optim._adafactor import Adafactor as Adafactor
from torchshim.optim._muon import Muon as Muon
from torchshim.optim._stateless import (
    swap_in_optimizer_params_and_state as swap_in_optimizer_params_and_state,
)
from torchshim.optim.adadelta import Adadelta as Adadelta
from torchshim.optim.adagrad import Adagrad as Adagrad
from torchshim.optim.adam import Adam as Adam
from torchshim.optim.adamax import Adamax as Adamax
from torchshim.optim.adamw import AdamW as AdamW
from torchshim.optim.asgd import ASGD as ASGD
from torchshim.optim.lbfgs import LBFGS as LBFGS
from torchshim.optim.nadam import NAdam as NAdam
from torchshim.optim.optimizer import Optimizer as Optimizer
from torchshim.optim.radam import RAdam as RAdam
from torchshim.optim.rmsprop import RMSprop as RMSprop
from torchshim.optim.rprop import Rprop as Rprop
from torchshim.optim.sgd import SGD as SGD
from torchshim.optim.sparse_adam import SparseAdam as SparseAdam

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
    "swap_in_optimizer_params_and_state",
]

Adafactor.__module__ = "torchshim.optim"
Muon.__module__ = "torchshim.optim"

# PyTorch has the other modules, but not as attributes.
for _name in [n for n, v in globals().items() if isinstance(v, _ModuleType)]:
    if _name not in __all__ and not _name.startswith("_"):
        del globals()[_name]

__getattr__ = _submodules(__name__, "_functional")
