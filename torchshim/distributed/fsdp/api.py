"""Settings of `FullyShardedDataParallel`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from torchshim._core.dtypes import dtype
from torchshim.nn.modules.batchnorm import _BatchNorm
from torchshim.nn.modules.module import Module

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "LocalOptimStateDictConfig",
    "LocalStateDictConfig",
    "MixedPrecision",
    "OptimStateDictConfig",
    "OptimStateKeyType",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictConfig",
    "StateDictSettings",
    "StateDictType",
]


class ShardingStrategy(Enum):
    """What is spread over processes."""

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When the parameters of the next module are gathered."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


@dataclass
class MixedPrecision:
    """The dtypes of parameters, of what is reduced, and of buffers."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    buffer_dtype: dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Sequence[type[Module]] = (_BatchNorm,)


@dataclass
class CPUOffload:
    """Whether parameters wait in the memory of the host."""

    offload_params: bool = False


class StateDictType(Enum):
    """What a state dict has of parameters that are spread."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


@dataclass
class StateDictConfig:
    """How state dicts of modules are made."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """... of whole parameters."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """... of what a process has."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """... of the pieces."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """How state dicts of optimizers are made."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """... of whole parameters."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """... of what a process has."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """... of the pieces."""

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """Which state dicts of a model and of its optimizer are made, and how."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig


class OptimStateKeyType(Enum):
    """By what an optimizer's state dict has its parameters."""

    PARAM_NAME = auto()
    PARAM_ID = auto()
