"""`torch.testing._internal.common_device_type`: tests made for each device.

Devices are the CPU and, where JAX has GPUs, "cuda". Tests of meta, MPS, XLA or XPU
devices are skipped, as by a PyTorch that lacks these.
"""

from __future__ import annotations

import copy
import functools
import inspect
import os
import unittest
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torchshim as torch
from torchshim.testing._internal._conditions import (
    NATIVE_DEVICES,
    TEST_CUDA,
    TEST_MKL,
    never_skipped,
)
from torchshim.testing._internal._op_parametrization import (
    ANY_DTYPE_ORDER as ANY_DTYPE_ORDER,
)
from torchshim.testing._internal._op_parametrization import OpDTypes as OpDTypes
from torchshim.testing._internal._op_parametrization import SkipSpec as SkipSpec
from torchshim.testing._internal._op_parametrization import ops as ops
from torchshim.testing._internal._op_parametrization import skip as skip
from torchshim.testing._internal._op_parametrization import skipOps as skipOps
from torchshim.testing._internal._op_parametrization import xfail as xfail
from torchshim.testing._internal._parametrization import (
    Made,
    Test,
    add_test,
    compose_parametrize_fns,
    dtype_name,
)
from torchshim.testing._internal._test_case import TestCase

tol = namedtuple("tol", ["atol", "rtol"])


def _put(kwargs: dict[str, Any], name: str, value: Any) -> None:
    """An argument of a test; several values go by the plural of the name."""
    kwargs.pop(name, None)
    kwargs.pop(f"{name}s", None)
    if isinstance(value, (list, tuple)):
        kwargs[f"{name}s"] = value
    elif value is not None:
        kwargs[name] = value


_update_param_kwargs = _put


class DeviceTypeTestBase(TestCase):
    """What the tests of one kind of device have in common."""

    device_type: str = "generic_device_type"
    __test__ = False

    @classmethod
    def get_primary_device(cls) -> str:
        """The device that tests with one device use."""
        return cls.device_type

    @classmethod
    def get_all_devices(cls) -> list[str]:
        """All devices of the kind, the primary one first."""
        return [cls.get_primary_device()]

    @classmethod
    def instantiate_test(
        cls, name: str, test: Test, *, generic_cls: Any = None
    ) -> None:
        """Adds what the decorators make of a generic test."""
        make: Any = getattr(test, "parametrize_fn", _as_is)
        of_dtypes = getattr(test, "dtypes", None)
        if of_dtypes is not None:
            if "all" not in of_dtypes:
                raise AssertionError(
                    "@dtypes is mandatory when using @dtypesIf however "
                    f"'{test.__name__}' didn't specify it"
                )
            chosen = of_dtypes.get(cls.device_type, of_dtypes["all"])
            make = compose_parametrize_fns(functools.partial(_each, chosen), make)
        for made, suffix, kwargs, decorators in make(test, generic_cls, cls):
            parts = [name, suffix, cls.device_type]
            found = kwargs.get("dtypes", kwargs.get("dtype"))
            several = found if isinstance(found, (list, tuple)) else [found]
            parts += [dtype_name(d) for d in several if d is not None]
            given = dict(kwargs)
            names = inspect.signature(made).parameters
            if "device" in names or "devices" in names:
                all_of_them = hasattr(made, "num_required_devices")
                device: Any = cls.get_primary_device()
                _put(given, "device", cls.get_all_devices() if all_of_them else device)
            for decorator in decorators(given):
                made = decorator(made)
            add_test(cls, "_".join(p for p in parts if p), _run(made, given))

    def _tolerances(self, test: Test, kwargs: dict[str, Any]) -> tuple[float, float]:
        dtype = kwargs.get("dtypes", kwargs.get("dtype"))
        precision = getattr(test, "precision_overrides", {}).get(dtype, self.precision)
        found = getattr(test, "tolerance_overrides", {}).get(dtype)
        return tuple(found) if found is not None else (precision, self.rel_tol)


def _as_is(test: Test, generic_cls: Any, device_cls: Any) -> Iterator[Made]:
    yield test, "", {}, lambda _: []


def _each(chosen: Any, test: Test, generic_cls: Any, device_cls: Any) -> Iterator[Made]:
    for dtype in chosen:
        kwargs: dict[str, Any] = {}
        _put(kwargs, "dtype", dtype)
        yield test, "", kwargs, lambda _: []


def _run(test: Test, kwargs: dict[str, Any]) -> Test:
    @functools.wraps(test)
    def run(self: Any, param_kwargs: dict[str, Any] = kwargs) -> Any:
        before = self.precision, self.rel_tol
        self.precision, self.rel_tol = self._tolerances(test, param_kwargs)
        try:
            return test(self, **param_kwargs)
        finally:
            self.precision, self.rel_tol = before

    return run


class CPUTestBase(DeviceTypeTestBase):
    """Tests on the CPU."""

    device_type = "cpu"


class CUDATestBase(DeviceTypeTestBase):
    """Tests on GPUs."""

    device_type = "cuda"

    @classmethod
    def get_primary_device(cls) -> str:
        return f"cuda:{torch.cuda.current_device()}"

    @classmethod
    def get_all_devices(cls) -> list[str]:
        first = cls.get_primary_device()
        found = (f"cuda:{i}" for i in range(torch.cuda.device_count()))
        return [first, *(name for name in found if name != first)]


# Variables of the environment: kinds of devices to make tests for, or not.
PYTORCH_TESTING_DEVICE_ONLY_FOR_KEY = "PYTORCH_TESTING_DEVICE_ONLY_FOR"
PYTORCH_TESTING_DEVICE_EXCEPT_FOR_KEY = "PYTORCH_TESTING_DEVICE_EXCEPT_FOR"
device_type_test_bases = [CPUTestBase, *([CUDATestBase] if TEST_CUDA else [])]


def get_device_type_test_bases() -> list[Any]:
    """The bases of all kinds of devices that there are."""
    return list(device_type_test_bases)


def filter_desired_device_types(
    device_type_test_bases: Any, except_for: Any = None, only_for: Any = None
) -> list[Any]:
    """The bases whose device is in `only_for`, if given, and not in `except_for`."""
    but, only = _names(except_for), _names(only_for)
    both = but & only
    if both:
        raise AssertionError(f"except_for and only_for intersect: {both}")
    kept = (b for b in device_type_test_bases if b.device_type not in but)
    return [b for b in kept if not only or b.device_type in only]


def _names(given: Any) -> set[str]:
    if not given:
        return set()
    return {given} if isinstance(given, str) else set(given)


def get_desired_device_type_test_bases(
    except_for: Any = None,
    only_for: Any = None,
    include_lazy: bool = False,
    allow_mps: bool = False,
    allow_xpu: bool = False,
) -> list[Any]:
    """The bases to make tests for, by the arguments and the environment."""
    chosen = filter_desired_device_types(device_type_test_bases, except_for, only_for)

    def listed(name: str) -> list[str]:
        return [part for part in os.environ.get(name, "").split(",") if part]

    return filter_desired_device_types(
        chosen,
        listed(PYTORCH_TESTING_DEVICE_EXCEPT_FOR_KEY),
        listed(PYTORCH_TESTING_DEVICE_ONLY_FOR_KEY),
    )


def instantiate_device_type_tests(
    generic_test_class: Any,
    scope: dict[str, Any],
    except_for: Any = None,
    only_for: Any = None,
    include_lazy: bool = False,
    allow_mps: bool = False,
    allow_xpu: bool = False,
) -> None:
    """Puts a class for each device into `scope`, in place of the generic one.

    `TestFoo.test_bar` becomes `TestFooCPU.test_bar_cpu_float32`.
    """
    del scope[generic_test_class.__name__]
    members = vars(generic_test_class).copy()
    tests = [name for name in members if name.startswith("test")]
    for base in get_desired_device_type_test_bases(except_for, only_for):
        name = generic_test_class.__name__ + base.device_type.upper()
        # The generic tests are not to be inherited.
        shown = {"__module__": generic_test_class.__module__, "__test__": True}
        made: Any = type(name, (base, generic_test_class), shown)
        for each in tests:
            # A copy, as decorators write on the function.
            test = copy.copy(getattr(generic_test_class, each))
            made.instantiate_test(each, test, generic_cls=generic_test_class)
        scope[name] = made
    for name in tests:
        delattr(generic_test_class, name)


def get_all_device_types() -> list[str]:
    """The kinds of devices there are."""
    return [base.device_type for base in device_type_test_bases]


# Decorators -------------------------------------------------------------------------


class dtypes:
    """A test for each of these dtypes, or of these tuples of dtypes."""

    def __init__(self, *args: Any, device_type: str = "all") -> None:
        several = bool(args) and isinstance(args[0], (list, tuple))
        for arg in args:
            if several and not isinstance(arg, (list, tuple)):
                raise AssertionError(
                    "When one dtype variant is a tuple or list, all dtype variants "
                    f"must be. Received non-list non-tuple dtype {arg}"
                )
            for dtype in arg if several else [arg]:
                if not isinstance(dtype, torch.dtype):
                    raise AssertionError(f"Unknown dtype in {arg if several else args}")
        self.args = args
        self.device_type = device_type

    def __call__(self, fn: Any) -> Any:
        found = dict(getattr(fn, "dtypes", {}))
        if self.device_type in found:
            raise AssertionError(f"dtypes redefinition for {self.device_type}")
        fn.dtypes = found | {self.device_type: self.args}
        return fn


def _dtypes_of(device_type: str) -> Callable[..., dtypes]:
    return functools.partial(dtypes, device_type=device_type)


dtypesIfCPU = _dtypes_of("cpu")
dtypesIfCUDA = _dtypes_of("cuda")
dtypesIfMPS = _dtypes_of("mps")
dtypesIfXPU = _dtypes_of("xpu")
dtypesIfHPU = _dtypes_of("hpu")
dtypesIfPRIVATEUSE1 = _dtypes_of("privateuseone")


class precisionOverride:
    """Absolute tolerances by dtype, for `assertEqual`."""

    def __init__(self, d: dict[Any, float]) -> None:
        if not isinstance(d, dict):
            raise AssertionError(
                "precisionOverride not given a dtype : precision dict!"
            )
        self.d = d

    def __call__(self, fn: Any) -> Any:
        fn.precision_overrides = self.d
        return fn


class toleranceOverride:
    """`tol(atol, rtol)` by dtype, for `assertEqual`."""

    def __init__(self, d: dict[Any, Any]) -> None:
        if not isinstance(d, dict) or not all(isinstance(v, tol) for v in d.values()):
            raise AssertionError("toleranceOverride not given a dtype : tol dict!")
        self.d = d

    def __call__(self, fn: Any) -> Any:
        fn.tolerance_overrides = self.d
        return fn


class skipIf:
    """Skips a test on a kind of device; `dep` is a condition or an attribute's name."""

    def __init__(self, dep: Any, reason: str, device_type: Any = None) -> None:
        self.dep = dep
        self.reason = reason
        self.device_type = device_type

    def __call__(self, fn: Any) -> Any:
        @functools.wraps(fn)
        def run(slf: Any, *args: Any, **kwargs: Any) -> Any:
            of = self.device_type
            here = of is None or slf.device_type == of
            if not here and not isinstance(of, str) and isinstance(of, Iterable):
                here = slf.device_type in of
            dep = self.dep
            holds = getattr(slf, dep, True) if isinstance(dep, str) else dep is True
            if here and holds:
                raise unittest.SkipTest(self.reason)
            return fn(slf, *args, **kwargs)

        return run


def _skip_on(device_type: Any) -> Callable[[Any, str], skipIf]:
    return lambda dep, reason: skipIf(dep, reason, device_type=device_type)


skipCPUIf = _skip_on("cpu")
skipCUDAIf = _skip_on("cuda")
skipGPUIf = _skip_on(("cuda", "xpu"))
skipMetaIf = _skip_on("meta")
skipMPSIf = _skip_on("mps")
skipXPUIf = _skip_on("xpu")
skipXLAIf = _skip_on("xla")
skipHPUIf = _skip_on("hpu")
skipLazyIf = _skip_on("lazy")
skipPRIVATEUSE1If = _skip_on("privateuseone")


class onlyOn:
    """Runs a test on these kinds of devices only."""

    def __init__(self, device_type: str | list[str]) -> None:
        self.device_type = device_type

    def __call__(self, fn: Any) -> Any:
        @functools.wraps(fn)
        def run(slf: Any, *args: Any, **kwargs: Any) -> Any:
            if slf.device_type not in self.device_type:
                raise unittest.SkipTest(f"Only runs on {self.device_type}")
            return fn(slf, *args, **kwargs)

        return run


onlyCPU = onlyOn("cpu")
onlyCUDA = onlyOn("cuda")
onlyMPS = onlyOn("mps")
onlyXPU = onlyOn("xpu")
onlyHPU = onlyOn("hpu")
onlyPRIVATEUSE1 = onlyOn("privateuseone")
onlyCUDAAndPRIVATEUSE1 = onlyOn(["cuda", "privateuseone"])
onlyAccelerator = onlyOn(["cuda", "xpu", "mps"])
onlyNativeDeviceTypes = onlyOn(list(NATIVE_DEVICES))


def onlyNativeDeviceTypesAnd(devices: Any = None) -> onlyOn:
    """Runs a test on the native devices and these."""
    return onlyOn([*NATIVE_DEVICES, *_names(devices)])


class expectedFailure:
    """Expects a test to fail on a kind of device, or in a dtype."""

    def __init__(self, device_type: str | None, dtype: Any = None) -> None:
        self.device_type = device_type
        self.dtype = dtype

    def __call__(self, fn: Any) -> Any:
        @functools.wraps(fn)
        def run(slf: Any, *args: Any, **kwargs: Any) -> Any:
            here = self.device_type in (None, slf.device_type)
            if not here or self.dtype not in (None, kwargs.get("dtype")):
                return fn(slf, *args, **kwargs)
            try:
                fn(slf, *args, **kwargs)
            except Exception:
                return None
            return slf.fail("expected test to fail, but it passed")

        return run


expectedFailureCPU = expectedFailure("cpu")
expectedFailureCUDA = expectedFailure("cuda")
expectedFailureMeta = expectedFailure("meta")
expectedFailureMPS = expectedFailure("mps")
expectedFailureXPU = expectedFailure("xpu")
expectedFailureXLA = expectedFailure("xla")
expectedFailureHPU = expectedFailure("hpu")


class deviceCountAtLeast:
    """Gives a test all devices, and skips it where there are fewer than this."""

    def __init__(self, num_required_devices: int) -> None:
        self.num_required_devices = num_required_devices

    def __call__(self, fn: Any) -> Any:
        @functools.wraps(fn)
        def run(slf: Any, devices: Any, *args: Any, **kwargs: Any) -> Any:
            if len(devices) < self.num_required_devices:
                raise unittest.SkipTest(
                    f"fewer than {self.num_required_devices} devices detected"
                )
            return fn(slf, devices, *args, **kwargs)

        run.num_required_devices = self.num_required_devices  # type: ignore[attr-defined]
        return run


def largeTensorTest(size: Any, device: Any = None, inductor: bool = False) -> Any:
    """Skips a test that needs much memory (bytes, or "2GB") where there is less."""
    if isinstance(size, str):
        number = size.removesuffix("GB").removesuffix("gb")
        size = int(number) << 30

    def decorate(fn: Any) -> Any:
        @functools.wraps(fn)
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
            # What is there is shared with everything else.
            if size > there // 2:
                raise unittest.SkipTest("Insufficient memory")
            return fn(self, *args, **kwargs)

        return run

    return decorate


PYTORCH_CUDA_MEMCHECK = TEST_WITH_ROCM = has_hipsolver = False
has_cusolver = TEST_CUDA
e4m3_type, e5m2_type = torch.float8_e4m3fn, torch.float8_e5m2
E4M3_MAX_POS, E5M2_MAX_POS = torch.finfo(e4m3_type).max, torch.finfo(e5m2_type).max
expectedFailureMPSComplex = expectedFailureMPSPre14 = expectedFailureMPSPre15 = (
    expectedFailureMPS
)
flex_attention_supported_platform = never_skipped

# About libraries and versions of GPUs: XLA has its own.
skipCPUIfNoLapack = skipCPUIfNoFFT = skipCPUIfNoMkldnn = never_skipped
skipCUDAIfNoMagma = skipCUDAIfNoCusolver = skipCUDAIfRocm = never_skipped
skipCUDAIfNoMagmaAndNoCusolver = skipCUDAIfNoMagmaAndNoLinalgsolver = never_skipped
skipCUDAIfNoCusolverROCMIfNoMagma = skipCUDAIfRocmVersionLessThan = never_skipped
skipCUDAIfNoSparseGeneric = skipCUDAIfNoCusparseGeneric = never_skipped
skipCUDAIfMiopen = skipCUDAIfNoMiopen = skipCUDAIfNotMiopenSuggestNHWC = never_skipped
skipCUDAVersionIn = skipCUDAIfVersionLessThan = never_skipped
skipCUDAIfNoCudnn = skipCUDAIf(True, "cuDNN not available")
skipCUDAIfCudnnVersionLessThan = never_skipped
skipCUDAIfNotRocm = skipCUDAIf(True, "test runs on ROCm only")
skipCPUIfNoMkl = skipCPUIf(not TEST_MKL, "PyTorch is built without MKL support")
skipCPUIfNoMklSparse = skipCPUIfNoMkl
skipLazy = skipLazyIf(True, "test doesn't work with lazy tensors")
skipMeta = skipMetaIf(True, "test doesn't work with meta tensors")
skipXLA = skipXLAIf(True, "Marked as skipped for XLA")
skipMPS = skipMPSIf(True, "test doesn't work on MPS backend")
skipXPU = skipXPUIf(True, "test doesn't work on XPU backend")
skipHPU = skipHPUIf(True, "test doesn't work on HPU backend")
skipPRIVATEUSE1 = skipPRIVATEUSE1If(True, "test doesn't work on privateuse1 backend")
disablecuDNN = disableMkldnn = never_skipped
