"""`torch.testing._internal.common_modules`: a database of modules."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torchshim as torch
from torchshim import nn
from torchshim.nn.modules.lazy import LazyModuleMixin
from torchshim.testing import make_tensor
from torchshim.testing._internal._databases import decorators_for
from torchshim.testing._internal._module_errors import REFUSING, refusals
from torchshim.testing._internal._module_table import ROWS, Given, Row
from torchshim.testing._internal._parametrization import Made, Test, _TestParametrizer


class TrainEvalMode(enum.Enum):
    """In which modes a module is tested; `train_and_eval` where they differ."""

    train_only = 0
    eval_only = 1
    train_and_eval = 2


class ModuleErrorEnum(enum.Enum):
    """When a module raises."""

    CONSTRUCTION_ERROR = 0
    FORWARD_ERROR = 1


class FunctionInput:
    """Arguments of a call."""

    __slots__ = ("args", "kwargs")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs


class ModuleInput:
    """Arguments of a module's constructor and of its `forward`."""

    __slots__ = ("constructor_input", "desc", "forward_input", "reference_fn")

    def __init__(
        self,
        constructor_input: FunctionInput,
        forward_input: FunctionInput | None = None,
        desc: str = "",
        reference_fn: Any = None,
    ) -> None:
        self.constructor_input = constructor_input
        self.forward_input = forward_input
        self.desc = desc
        self.reference_fn = reference_fn


class ErrorModuleInput:
    """Arguments that a module refuses, and its error."""

    __slots__ = ("error_on", "error_regex", "error_type", "module_error_input")

    def __init__(
        self,
        module_error_input: ModuleInput,
        *,
        error_on: ModuleErrorEnum = ModuleErrorEnum.CONSTRUCTION_ERROR,
        error_type: type[BaseException] = RuntimeError,
        error_regex: str = "",
    ) -> None:
        self.module_error_input = module_error_input
        self.error_on = error_on
        self.error_type = error_type
        self.error_regex = error_regex


class ModuleInfo:
    """What is known of a module."""

    def __init__(
        self,
        module_cls: Any,
        *,
        module_inputs_func: Any,
        skips: Any = (),
        decorators: Any = (),
        dtypes: Any = (torch.float32, torch.float64),
        supports_gradgrad: bool = True,
        gradcheck_nondet_tol: float = 0.0,
        module_memformat_affects_out: bool = False,
        train_and_eval_differ: bool = False,
        module_error_inputs_func: Any = None,
        gradcheck_fast_mode: Any = None,
    ) -> None:
        self.module_cls = module_cls
        self.module_inputs_func = module_inputs_func
        self.decorators = (*(decorators or ()), *(skips or ()))
        self.dtypes = dtypes
        self.supports_gradgrad = supports_gradgrad
        self.gradcheck_nondet_tol = gradcheck_nondet_tol
        self.module_memformat_affects_out = module_memformat_affects_out
        self.train_and_eval_differ = train_and_eval_differ
        self.module_error_inputs_func = module_error_inputs_func
        self.gradcheck_fast_mode = gradcheck_fast_mode
        self.is_lazy = issubclass(module_cls, LazyModuleMixin)

    @property
    def name(self) -> str:
        """Its place within `torch.nn.modules`."""
        name = f"{self.module_cls.__module__}.{self.module_cls.__name__}"
        prefix = "torch.nn.modules."
        if name.startswith(prefix):
            return f"nn.{self.module_cls.__name__}"
        return name

    @property
    def formatted_name(self) -> str:
        """The name, fit for the name of a test."""
        return self.name.replace(".", "_")

    def supported_dtypes(self, device_type: Any) -> Any:
        """The dtypes of its parameters and inputs."""
        return self.dtypes

    def get_decorators(self, *place: Any) -> list[Any]:
        """The decorators of a test, by class, name, device, dtype and arguments."""
        return decorators_for(self.decorators, *place)


class modules(_TestParametrizer):
    """A test for each of these modules, dtypes and modes."""

    def __init__(
        self,
        module_info_iterable: Any,
        allowed_dtypes: Any = None,
        train_eval_mode: TrainEvalMode = TrainEvalMode.train_and_eval,
        skip_if_dynamo: bool = True,
    ) -> None:
        self.module_info_list = list(module_info_iterable)
        self.allowed_dtypes = None if allowed_dtypes is None else set(allowed_dtypes)
        self.train_eval_mode = train_eval_mode

    def _modes(self, info: ModuleInfo) -> list[bool]:
        mode = self.train_eval_mode
        if mode is TrainEvalMode.train_only:
            return [True]
        if mode is TrainEvalMode.eval_only:
            return [False]
        return [True, False] if info.train_and_eval_differ else [True]

    def _parametrize_test(
        self, test: Test, generic_cls: Any, device_cls: Any
    ) -> Iterator[Made]:
        if device_cls is None:
            raise RuntimeError(
                "The @modules decorator is only intended to be used in a "
                "device-specific context; use it with instantiate_device_type_tests() "
                "instead of instantiate_parametrized_tests()"
            )
        for info in self.module_info_list:
            dtypes = info.supported_dtypes(device_cls.device_type)
            for training in self._modes(info):
                for dtype in dtypes:
                    if self.allowed_dtypes and dtype not in self.allowed_dtypes:
                        continue

                    @functools.wraps(test)
                    def run(*args: Any, **kwargs: Any) -> Any:
                        return test(*args, **kwargs)

                    name = info.formatted_name
                    if len(self._modes(info)) > 1:
                        name += "_train_mode" if training else "_eval_mode"
                    given = {"module_info": info, "dtype": dtype, "training": training}
                    decorators = functools.partial(
                        info.get_decorators,
                        generic_cls.__name__,
                        test.__name__,
                        device_cls.device_type,
                        dtype,
                    )
                    yield run, name, given, decorators


def _inputs(rows: list[Row]) -> Any:
    def made(
        module_info: Any,
        device: Any,
        dtype: Any,
        requires_grad: bool,
        training: bool,
        **kwargs: Any,
    ) -> list[ModuleInput]:
        def tensor(asked: Given) -> Any:
            given = {"device": device, "dtype": dtype, "requires_grad": requires_grad}
            return asked(**given) if callable(asked) else make_tensor(asked, **given)

        found = []
        for _, args, options, inputs in rows:
            given: Any = args(dtype) if callable(args) else args
            found.append(
                ModuleInput(
                    FunctionInput(*given, **options),
                    FunctionInput(*map(tensor, inputs)),
                    ", ".join(map(str, (*given, *options))),
                )
            )
        return found

    return made


def _errors(cls: Any) -> Callable[..., list[ErrorModuleInput]]:
    """The arguments that a class refuses, as a function of a test's."""

    def made(*args: Any, **kwargs: Any) -> list[ErrorModuleInput]:
        kinds = ModuleErrorEnum
        return [
            ErrorModuleInput(
                ModuleInput(
                    FunctionInput(*given, **named),
                    None if inputs is None else FunctionInput(*inputs),
                ),
                error_on=kinds.CONSTRUCTION_ERROR
                if inputs is None
                else kinds.FORWARD_ERROR,
                error_type=error,
                error_regex=text,
            )
            for given, named, inputs, error, text in refusals(cls)
        ]

    return made


_DIFFERING = {
    *(nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.GRU, nn.LSTM, nn.RNN),
    *(nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d, nn.MultiheadAttention),
    *(nn.TransformerEncoder, nn.TransformerEncoderLayer),
}


_COMPLEX = torch.float32, torch.float64, torch.complex64, torch.complex128
_HALVES = torch.float32, torch.float64, torch.float16, torch.bfloat16
_DTYPES = {
    **dict.fromkeys((nn.ConvTranspose1d, nn.ConvTranspose2d), _COMPLEX),
    **{nn.ConvTranspose3d: _COMPLEX, nn.GroupNorm: _HALVES},
}


def _database() -> list[ModuleInfo]:
    by_class: dict[Any, list[Row]] = {}
    for row in ROWS:
        by_class.setdefault(row[0], []).append(row)
    found = [
        ModuleInfo(
            cls,
            module_inputs_func=_inputs(rows),
            train_and_eval_differ=cls in _DIFFERING,
            module_error_inputs_func=_errors(cls) if cls in REFUSING else None,
            module_memformat_affects_out="Conv" in cls.__name__,
            dtypes=_DTYPES.get(cls, (torch.float32, torch.float64)),
        )
        for cls, rows in by_class.items()
    ]
    return sorted(found, key=lambda info: info.name)


module_db: list[ModuleInfo] = _database()
