"""`torch.testing._internal.common_optimizers`: a database of the optimizers."""

from __future__ import annotations

import copy
import enum
import functools
import itertools
import unittest
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torchshim as torch
from torchshim import optim
from torchshim.optim import lr_scheduler
from torchshim.testing._internal._databases import (
    DecorateInfo,
    decorators_for,
    device_type,
)
from torchshim.testing._internal._optimizer_configurations import (
    CAPTURABLE,
    CONFIGURATIONS,
    REFUSED,
)
from torchshim.testing._internal._parametrization import Made, Test, _TestParametrizer

_get_device_type = device_type


@dataclass
class OptimizerInput:
    """Arguments of an optimizer; `params` None leaves them to the test."""

    params: Any
    kwargs: dict[str, Any]
    desc: str = ""


class OptimizerErrorEnum(enum.Enum):
    """When an optimizer raises."""

    CONSTRUCTION_ERROR = 0
    STEP_ERROR = 1


@dataclass
class ErrorOptimizerInput:
    """Arguments that an optimizer refuses, and its error."""

    optimizer_error_input: OptimizerInput
    error_on: OptimizerErrorEnum = OptimizerErrorEnum.CONSTRUCTION_ERROR
    error_type: type[BaseException] = RuntimeError
    error_regex: str = ""


_SCHEDULERS = (
    [
        lambda opt: lr_scheduler.StepLR(opt, gamma=0.9, step_size=10),
        lambda opt: lr_scheduler.ReduceLROnPlateau(opt),
    ],
)
_FLAGS = ("foreach", "differentiable", "maximize", "capturable")


@dataclass
class OptimizerInfo:
    """What is known of an optimizer."""

    optim_cls: Any
    optim_inputs_func: Callable[..., list[OptimizerInput]]
    scheduler_inputs: Any = _SCHEDULERS
    supported_impls: tuple[str, ...] = ("foreach", "differentiable")
    not_og_supported_flags: tuple[str, ...] = _FLAGS
    supports_sparse: bool = False
    has_capturable_arg: bool = False
    only_supports_sparse_grads: bool = False
    metadata_for_sparse: Any = ({}, [])
    supports_complex: bool = True
    step_requires_closure: bool = False
    supports_param_groups: bool = True
    supports_multiple_devices: bool = True
    skips: Any = ()
    decorators: Any = ()
    optim_error_inputs_func: Any = None
    supports_fused_on: tuple[str, ...] = ()
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.optim_cls.__name__
        self.decorators = (*(self.decorators or ()), *(self.skips or ()))

    def get_decorators(self, *place: Any) -> list[Any]:
        """The decorators of a test, by class, name, device, dtype and arguments."""
        return decorators_for(self.decorators, *place)


class optims(_TestParametrizer):
    """A test for each of these optimizers."""

    def __init__(self, optim_info_iterable: Any, dtypes: Any = None) -> None:
        self.optim_info_list = list(optim_info_iterable)
        self.dtypes = dtypes if dtypes is not None else [torch.float32]

    def _parametrize_test(
        self, test: Test, generic_cls: Any, device_cls: Any
    ) -> Iterator[Made]:
        if device_cls is None:
            raise RuntimeError(
                "The @optims decorator is only intended to be used in a "
                "device-specific context; use it with instantiate_device_type_tests() "
                "instead of instantiate_parametrized_tests()"
            )
        for info, dtype in itertools.product(self.optim_info_list, self.dtypes):

            @functools.wraps(test)
            def run(*args: Any, **kwargs: Any) -> Any:
                return test(*args, **kwargs)

            decorators = functools.partial(
                info.get_decorators,
                generic_cls.__name__,
                test.__name__,
                device_cls.device_type,
                dtype,
            )
            yield run, info.name, {"optim_info": info, "dtype": dtype}, decorators


def get_error_inputs_for_all_optims(
    device: Any, dtype: Any
) -> list[ErrorOptimizerInput]:
    """What every optimizer refuses."""
    if device_type(device) != "cpu":
        return []
    one, other = (
        torch.nn.Parameter(torch.randn(1, 1, device=device, dtype=dtype))
        for _ in range(2)
    )
    named = [{"params": [one], "lr": 1e-2}, {"params": [("weight", other)]}]
    table: list[tuple[Any, dict[str, Any], type[BaseException], str]] = [
        (
            *(one, {}, TypeError),
            "params argument given to the optimizer should be an iterable of Tensors "
            "or dicts",
        ),
        ([one, one], {}, UserWarning, ".*a parameter group with duplicate parameters"),
        (
            *([{"params": one}, {"params": one}], {}, ValueError),
            "some parameters appear in more than one parameter group",
        ),
        (
            *(None, {"lr": torch.tensor([0.001, 0.001])}, ValueError),
            "Tensor lr must be 1-element",
        ),
        (
            *([("weight", one), other], {}, ValueError),
            "all optimizer params should be with/without names. Some param names are "
            "missing",
        ),
        (
            *(named, {}, ValueError),
            "all optimizer param groups should be with/without names. cannot add param "
            "group with names to the optimizer",
        ),
    ]
    return [
        ErrorOptimizerInput(
            OptimizerInput(params, kwargs, text), error_type=kind, error_regex=text
        )
        for params, kwargs, kind, text in table
    ]


def _inputs_of(name: str) -> Callable[..., list[OptimizerInput]]:
    def made(device: Any = "cpu", dtype: Any = None) -> list[OptimizerInput]:
        chosen = list(CONFIGURATIONS[name])
        if device_type(device) == "cuda":
            chosen += CAPTURABLE.get(name, [])
        found = [
            OptimizerInput(None, copy.deepcopy(kwargs), ", ".join(kwargs) or "default")
            for kwargs in chosen
        ]
        if dtype == torch.float16 and name in ("Adam", "AdamW"):
            for each in found:
                each.kwargs["eps"] = 0.1
        return found

    return made


def _errors_of(name: str) -> Callable[..., list[ErrorOptimizerInput]]:
    def made(device: Any, dtype: Any) -> list[ErrorOptimizerInput]:
        found = get_error_inputs_for_all_optims(device, dtype)
        if device_type(device) != "cpu":
            return found
        for params, kwargs, kind, text in REFUSED.get(name, lambda *_: [])(
            device, dtype
        ):
            late = kind is RuntimeError and "complex" in text
            at = OptimizerErrorEnum.STEP_ERROR if late else None
            found.append(
                ErrorOptimizerInput(
                    OptimizerInput(params, kwargs, text),
                    at or OptimizerErrorEnum.CONSTRUCTION_ERROR,
                    kind,
                    text,
                )
            )
        return found

    return made


def _get_optim_inputs_including_global_cliquey_kwargs(
    device: Any, dtype: Any, optim_info: OptimizerInfo, skip: Any = ()
) -> list[OptimizerInput]:
    """All configurations, with each of the flags that choose an implementation."""
    if not all(x in ["foreach", "fused", "differentiable"] for x in skip):
        raise AssertionError(
            "skip must be a subset of ['foreach', 'fused', 'differentiable']"
        )
    kind = device_type(device)
    flags = [
        flag
        for flag in optim_info.supported_impls
        if flag not in skip
        and (flag != "fused" or kind in optim_info.supports_fused_on)
        and (flag != "foreach" or kind == "cuda")
    ]
    found = []
    for each in optim_info.optim_inputs_func(device):
        base = copy.deepcopy(each.kwargs) | dict.fromkeys(flags, False)
        found.append(OptimizerInput(None, base, each.desc))
        for flag in flags:
            desc = f"{each.desc} & {flag}"
            found.append(OptimizerInput(None, copy.deepcopy(base) | {flag: True}, desc))
    return found


def _entry(name: str, **known: Any) -> OptimizerInfo:
    return OptimizerInfo(
        getattr(optim, name),
        _inputs_of(name),
        optim_error_inputs_func=_errors_of(name),
        **known,
    )


def _without(reason: str, *names: str) -> tuple[DecorateInfo, ...]:
    return tuple(
        DecorateInfo(unittest.skip(reason), "TestOptimRenewed", name) for name in names
    )


_L = lr_scheduler
_STEP = lambda opt: _L.StepLR(opt, gamma=0.9, step_size=10)  # noqa: E731
_PLATEAU = lambda opt: _L.ReduceLROnPlateau(opt)  # noqa: E731
_MANY = (
    [lambda opt: _L.ExponentialLR(opt, gamma=0.9)],
    [lambda opt: _L.LinearLR(opt, start_factor=0.4, total_iters=4)],
    [_STEP, lambda opt: _L.LinearLR(opt, start_factor=0.4, total_iters=4)],
    [lambda opt: _L.ExponentialLR(opt, gamma=0.99), _PLATEAU],
    [lambda opt: _L.ConstantLR(opt, factor=0.4, total_iters=4)],
    [lambda opt: _L.PolynomialLR(opt, power=0.9, total_iters=4)],
    [_STEP, _PLATEAU],
)
_FUSED = {
    "supported_impls": ("foreach", "differentiable", "fused"),
    "not_og_supported_flags": (*_FLAGS, "fused"),
    "supports_fused_on": ("cpu", "cuda"),
}
_CAPTURABLE = {"has_capturable_arg": True}
_NO_GROUPS = _without(
    "Does not support param groups",
    "test_param_groups_lr",
    "test_param_groups_weight_decay",
    "test_param_group_with_lrscheduler_goes_right_direction",
)

optim_db: list[OptimizerInfo] = [
    _entry("Adadelta", **_CAPTURABLE),
    _entry(
        "Adafactor",
        supported_impls=("foreach",),
        not_og_supported_flags=("foreach",),
        supports_complex=False,
    ),
    _entry(
        "Adagrad",
        **_FUSED,
        supports_sparse=True,
        metadata_for_sparse=(
            {"lr": 0.1, "weight_decay": 0, "lr_decay": 0},
            [
                lambda opt: _L.StepLR(opt, gamma=1 - 1e-5, step_size=500),
                lambda opt: _L.ReduceLROnPlateau(opt, threshold=1e-4),
            ],
        ),
    ),
    _entry("Adam", **_FUSED, **_CAPTURABLE, scheduler_inputs=_MANY),
    _entry("Adamax", **_CAPTURABLE),
    _entry("AdamW", **_FUSED, **_CAPTURABLE),
    _entry(
        "ASGD",
        **_CAPTURABLE,
        skips=_without(
            "ASGD internally changes the weights even with zero grad",
            "test_step_is_noop_for_zero_grads",
        ),
    ),
    _entry(
        "LBFGS",
        supported_impls=(),
        step_requires_closure=True,
        supports_param_groups=False,
        supports_multiple_devices=False,
        skips=_NO_GROUPS,
    ),
    _entry(
        "Muon", supported_impls=(), not_og_supported_flags=(), supports_complex=False
    ),
    _entry("NAdam", **_CAPTURABLE),
    _entry("RAdam", **_CAPTURABLE),
    _entry("RMSprop", **_CAPTURABLE),
    _entry("Rprop", **_CAPTURABLE),
    _entry(
        "SGD",
        **_FUSED,
        scheduler_inputs=_MANY,
        supports_sparse=True,
        metadata_for_sparse=(
            {
                "lr": 4.8e-3,
                "maximize": False,
                "momentum": 0,
                "nesterov": False,
                "weight_decay": 0,
            },
            [lambda opt: _L.StepLR(opt, gamma=0.99999, step_size=300)],
        ),
    ),
    _entry(
        "SparseAdam",
        supported_impls=(),
        only_supports_sparse_grads=True,
        metadata_for_sparse=({"lr": 4e-2}, []),
        supports_complex=False,
        skips=_without(
            "SparseAdam does not support dense gradients, see #116507",
            "test_can_load_older_state_dict",
        ),
    ),
]


def _by_name(name: str) -> OptimizerInfo:
    return next(info for info in optim_db if info.name == name)


optim_error_inputs_func_adam = _by_name("Adam").optim_error_inputs_func
optim_inputs_func_adam = _by_name("Adam").optim_inputs_func
optim_inputs_func_adamw = _by_name("AdamW").optim_inputs_func
optim_inputs_func_sgd = _by_name("SGD").optim_inputs_func


class TensorTracker:
    """Copies of tensors, compared one after the other with those of another run."""

    def __init__(self, assert_eq_kwargs: dict[str, Any] | None = None) -> None:
        self.assert_eq_kwargs = assert_eq_kwargs or {}
        self.tensors: list[Any] = []

    def add(self, tensor: Any) -> None:
        """Keeps a copy."""
        self.tensors.append(tensor.detach().clone())

    def pop_check_set(
        self, tensor_to_set: Any, testcase: Any, override_assert_eq_kwargs: Any = None
    ) -> None:
        """Compares a tensor with the oldest copy, and gives it the copy's values."""
        testcase.assertGreater(len(self.tensors), 0, "no tensors to pop")
        kept = self.tensors.pop(0)
        options = override_assert_eq_kwargs
        options = self.assert_eq_kwargs if options is None else options
        testcase.assertEqual(tensor_to_set, kept, **options)
        with torch.no_grad():
            tensor_to_set.copy_(kept)

    def all_popped(self) -> bool:
        """Whether no copy is left."""
        return not self.tensors
