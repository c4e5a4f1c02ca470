"""`ops`: tests for each operator of a database, in each of its dtypes."""

from __future__ import annotations

import enum
import functools
import unittest
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torchshim as torch
from torchshim.testing._internal._databases import DecorateInfo, decorators_for
from torchshim.testing._internal._parametrization import Made, Test, _TestParametrizer


class OpDTypes(enum.Enum):
    """Which dtypes of an operator are tested."""

    supported = 0
    unsupported = 1
    supported_backward = 2
    unsupported_backward = 3
    any_one = 4
    none = 5
    any_common_cpu_cuda_one = 6


ANY_DTYPE_ORDER = (
    *(torch.float32, torch.float64, torch.complex64, torch.complex128),
    *(torch.float16, torch.bfloat16, torch.long, torch.int32, torch.int16),
    *(torch.int8, torch.uint8, torch.bool),
)


class ops(_TestParametrizer):
    """A test for each operator and dtype; with `OpDTypes.none` for each operator."""

    def __init__(
        self,
        op_list: Iterable[Any],
        *,
        dtypes: Any = None,
        allowed_dtypes: Any = None,
        skip_if_dynamo: bool = True,
    ) -> None:
        self.op_list = list(op_list)
        self.opinfo_dtypes = OpDTypes.supported if dtypes is None else dtypes
        self.allowed_dtypes = None if allowed_dtypes is None else set(allowed_dtypes)

    def _dtypes(self, op: Any, device_type: str) -> Any:
        wanted = self.opinfo_dtypes
        supported = op.supported_dtypes(device_type)
        if wanted is OpDTypes.none:
            return [None]
        if wanted is OpDTypes.supported:
            return supported
        if wanted is OpDTypes.unsupported:
            return set(ANY_DTYPE_ORDER) - set(supported)
        if wanted is OpDTypes.supported_backward:
            return op.supported_backward_dtypes(device_type)
        if wanted is OpDTypes.unsupported_backward:
            return set(ANY_DTYPE_ORDER) - set(op.supported_backward_dtypes(device_type))
        if isinstance(wanted, OpDTypes):
            allowed = self.allowed_dtypes
            usable = (d for d in ANY_DTYPE_ORDER if d in supported)
            return [d for d in usable if allowed is None or d in allowed][:1]
        return set(wanted) & set(supported)

    def _parametrize_test(
        self, test: Test, generic_cls: Any, device_cls: Any
    ) -> Iterator[Made]:
        if device_cls is None:
            raise RuntimeError(
                "The @ops decorator is only intended to be used in a device-specific "
                "context; use it with instantiate_device_type_tests() instead of "
                "instantiate_parametrized_tests()"
            )
        for op in self.op_list:
            chosen = self._dtypes(op, device_cls.device_type)
            allowed = self.allowed_dtypes
            for dtype in sorted(chosen, key=str):
                if None not in (allowed, dtype) and dtype not in allowed:
                    continue

                @functools.wraps(test)
                def run(*args: Any, **kwargs: Any) -> Any:
                    return test(*args, **kwargs)

                given = {"op": op} | ({} if dtype is None else {"dtype": dtype})
                place = (generic_cls.__name__, test.__name__, device_cls.device_type)
                decorators = functools.partial(_decorators, op, test, *place, dtype)
                yield run, op.formatted_name, given, decorators


def _decorators(op: Any, test: Test, *place: Any) -> list[Any]:
    of_test = getattr(test, "_op_overrides", {}).get(op.full_name, ())
    return [*op.get_decorators(*place), *decorators_for(of_test, *place)]


SkipSpec = namedtuple(
    "SkipSpec", ["op_name", "variant_name", "device_type", "dtypes", "expected_failure"]
)


def xfail(
    op_name: str,
    variant_name: str = "",
    *,
    device_type: str | None = None,
    dtypes: Any = None,
) -> SkipSpec:
    """For `skipOps`: a test of this operator is expected to fail."""
    return SkipSpec(op_name, variant_name, device_type, dtypes, True)


def skip(
    op_name: str,
    variant_name: str = "",
    *,
    device_type: str | None = None,
    dtypes: Any = None,
) -> SkipSpec:
    """For `skipOps`: a test of this operator is skipped."""
    return SkipSpec(op_name, variant_name, device_type, dtypes, False)


def skipOps(to_skip: Iterable[Any]) -> Callable[[Any], Any]:
    """Skips a test for some operators, or expects it to fail; goes below `ops`."""

    def decorate(fn: Any) -> Any:
        *outer, test_name = fn.__qualname__.split(".")
        found = getattr(fn, "_op_overrides", {})
        for name, variant, device_type, dtypes, fails in to_skip:
            decorator = DecorateInfo(
                unittest.expectedFailure if fails else unittest.skip("Skipped!"),
                outer[-1] if outer else "",
                test_name,
                device_type=device_type,
                dtypes=dtypes,
            )
            full_name = f"{name}.{variant}" if variant else name
            found.setdefault(full_name, []).append(decorator)
        fn._op_overrides = found
        return fn

    return decorate
