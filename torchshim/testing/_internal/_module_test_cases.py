"""Tests of a module or of a loss, made from a row of `_module_tests`.

They are called with a `NNTestCase`, which knows how to run modules.
"""

from __future__ import annotations

import io
import unittest
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torchshim as torch
from torchshim.autograd import gradcheck, gradgradcheck
from torchshim.testing._internal.common_utils import (
    freeze_rng_state,
    set_default_dtype,
)


def _mapped(fn: Callable[[Any], Any], value: Any) -> Any:
    """A nested value with a function applied to its tensors."""
    if isinstance(value, torch.Tensor):
        return fn(value)
    if isinstance(value, (tuple, list)):
        return type(value)(_mapped(fn, each) for each in value)
    return value


class TestBase:
    """A test of a module: its arguments, its input, what it should give.

    An argument is given as a value (`input=`), as a function that makes it
    (`input_fn=`), or by its size (`input_size=`).
    """

    _required_arg_names = frozenset({"constructor_args", "input", "extra_args"})

    def __init__(
        self,
        constructor: Any,
        desc: str = "",
        reference_fn: Any = None,
        fullname: str | None = None,
        **kwargs: Any,
    ) -> None:
        self.desc = desc
        self.fullname = fullname
        self.constructor = constructor
        self.reference_fn = reference_fn
        for name in self._required_arg_names:
            forms = {name, f"{name}_fn", f"{name}_size"}
            if forms.isdisjoint(kwargs):
                if name not in ("constructor_args", "extra_args"):
                    raise ValueError(
                        f"{self.get_name()}: Specify {name} by a value, a function to "
                        "generate it, or it's size!"
                    )
                kwargs[name] = ()
        self._extra_kwargs = kwargs
        self._arg_cache: dict[str, Any] = {}

    def get_name(self) -> str:
        """The name of the test."""
        if self.fullname is not None:
            return f"test_{self.fullname}"
        tail = f"_{self.desc}" if self.desc else ""
        return f"test_{self.constructor.__name__}{tail}"

    def _unpack(self, value: Any) -> Any:
        return _mapped(lambda t: t, value)

    @property
    def constructor_args(self) -> Any:
        """The arguments of the module's class."""
        return self._get_arg("constructor_args", True)

    @property
    def extra_args(self) -> Any:
        """More arguments of a call."""
        return self._get_arg("extra_args", True)

    def _get_arg(self, name: str, unpack: bool) -> Any:
        if name not in self._required_arg_names:
            raise AssertionError(f"{name} is no argument of this test")
        given = self._extra_kwargs
        if name not in self._arg_cache:
            if given.get(name) is not None:
                self._arg_cache[name] = given[name]
            elif f"{name}_fn" in given:
                self._arg_cache[name] = given[f"{name}_fn"]()
            else:
                self._arg_cache[name] = _of_sizes(given[f"{name}_size"])
        found = self._arg_cache[name]
        return self._unpack(found) if unpack else found

    def _get_input(self, unpack: bool = True) -> Any:
        return self._get_arg("input", unpack)

    def __call__(self, test_case: Any) -> None:
        raise NotImplementedError


def _of_sizes(sizes: Any) -> Any:
    if isinstance(sizes, list):
        return [_of_sizes(each) for each in sizes]
    return torch.randn(sizes)


class ModuleTest(TestBase):
    """A module's result, alone and of inputs that are not contiguous, and gradients."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.jacobian_input = kwargs.get("jacobian_input", True)
        self.should_test_cuda = kwargs.get("test_cuda", True)
        self.should_test_pickle = kwargs.get("pickle", True)
        self.check_gradgrad = kwargs.get("check_gradgrad", True)
        self.FIXME_no_cuda_gradgrad_comparison = kwargs.get(
            "FIXME_no_cuda_gradgrad_comparison", False
        )
        self.precision = kwargs.get("precision", 2e-4)
        self.check_forward_only = kwargs.get("check_forward_only", False)
        self.default_dtype = kwargs.get("default_dtype") or torch.get_default_dtype()

    def __call__(self, test_case: Any) -> None:
        with set_default_dtype(self.default_dtype):
            module = self.constructor(*self.constructor_args)
            input = self._get_input()
            if self.reference_fn is not None:
                out = test_case._forward(module, input)
                copy = deepcopy(module)
                expected = self.reference_fn(
                    deepcopy(input), test_case._get_parameters(copy)[0], copy
                )
                test_case.assertEqual(out, expected, exact_dtype=False)
            if self.check_forward_only:
                return
            self.test_noncontig(test_case, module, input)
            if self.should_test_pickle:
                self._test_file(test_case, module, input)
            self._do_test(test_case, module, input)

    def _test_file(self, test_case: Any, module: Any, input: Any) -> None:
        """A module that went through a file gives the same."""
        with io.BytesIO() as file:
            test_case._forward(module, input)
            torch.save(module, file)
            file.seek(0)
            copy = torch.load(file, weights_only=False)
            test_case.assertEqual(
                test_case._forward(module, input), test_case._forward(copy, input)
            )

    def noncontiguize(self, obj: Any) -> Any:
        """The same values, in memory that is not contiguous."""
        if isinstance(obj, list):
            return [self.noncontiguize(each) for each in obj]
        if isinstance(obj, tuple):
            return tuple(self.noncontiguize(each) for each in obj)
        ndim = obj.dim()
        # Behind a dimension of more than one element, so that the strides matter.
        dim = next((i + 1 for i in range(ndim) if obj.size(i) != 1), ndim)
        spread = torch.stack([torch.empty_like(obj), obj], dim).select(dim, 1).detach()
        if spread.numel() > 1 and spread.is_contiguous():
            raise AssertionError("the copy is contiguous")
        return spread.requires_grad_(obj.requires_grad)

    def test_noncontig(self, test_case: Any, module: Any, input: Any) -> None:
        """Inputs and gradients that are not contiguous change nothing."""
        tensors = input if isinstance(input, (tuple, list)) else (input,)
        if any(t.dim() == 0 for t in tensors):
            return
        test_case._zero_grad_parameters(module)
        test_case._zero_grad_input(input)
        with freeze_rng_state():
            out = test_case._forward(module, input)
            vector = out.new(out.shape).normal_()
        found = deepcopy(test_case._backward(module, input, out, vector))
        params = deepcopy(test_case._get_parameters(module)[1])
        spread_in, spread_vector = self.noncontiguize(input), self.noncontiguize(vector)
        for given in (input, spread_in):
            for cotangent in (vector, spread_vector):
                test_case._zero_grad_parameters(module)
                test_case._zero_grad_input(given)
                with freeze_rng_state():
                    again = test_case._forward(module, given)
                test_case.assertEqual(again, out)
                grads = test_case._backward(module, given, again, cotangent)
                test_case.assertEqual(grads, found, atol=1e-4, rtol=0)
                test_case.assertEqual(test_case._get_parameters(module)[1], params)

    def _do_test(self, test_case: Any, module: Any, input: Any) -> None:
        raise NotImplementedError

    def test_cuda(self, test_case: Any) -> None:
        """The same on a GPU as on the CPU, gradients too."""
        if not torch.cuda.is_available() or not self.should_test_cuda:
            raise unittest.SkipTest("Excluded from CUDA tests")
        with set_default_dtype(self.default_dtype):
            here = self.constructor(*self.constructor_args)
            there = deepcopy(here).cuda()
            given = self._get_input()
            moved = _mapped(
                lambda t: t.detach().cuda().requires_grad_(t.requires_grad), given
            )
            found = test_case._forward(there, moved)
            expected = test_case._forward(here, given)
            test_case.assertEqual(
                expected, found, atol=self.precision, rtol=0, exact_dtype=False
            )


class InputVariableMixin:
    """Inputs with gradients, where they are not integers."""

    def _get_input(self) -> Any:
        found = TestBase._get_input(self, False)  # type: ignore[arg-type]

        def tracked(t: Any) -> Any:
            if t.is_floating_point() or t.is_complex():
                t.requires_grad = True
            return t

        return _mapped(tracked, found)


class NewModuleTest(InputVariableMixin, ModuleTest):
    """A test of a module of `torch.nn`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.cudnn = kwargs.get("cudnn", False)
        self.check_inplace = kwargs.get("check_inplace", False)
        self.check_gradgrad = kwargs.get("check_gradgrad", True)
        self.skip_double = kwargs.get("skip_double", False)
        self.skip_half = kwargs.get("skip_half", False)
        self.with_tf32 = kwargs.get("with_tf32", False)
        self.tf32_precision = kwargs.get("tf32_precision", 0.001)
        self.test_cpu = kwargs.get("test_cpu", True)
        self.has_sparse_gradients = kwargs.get("has_sparse_gradients", False)
        self.check_batched_grad = kwargs.get("check_batched_grad", True)
        self.gradcheck_fast_mode = kwargs.get("gradcheck_fast_mode")
        self.supports_forward_ad = kwargs.get("supports_forward_ad", False)
        self.supports_fwgrad_bwgrad = kwargs.get("supports_fwgrad_bwgrad", False)

    def _check_gradients(
        self, test_case: Any, module: Any, input_tuple: tuple[Any, ...]
    ) -> None:
        params = tuple(module.parameters())
        count = len(input_tuple)

        def run(*given: Any) -> Any:
            return test_case._forward(module, given[:count])

        test_case.assertTrue(
            gradcheck(
                run,
                input_tuple + params,
                check_batched_grad=self.check_batched_grad,
                fast_mode=self.gradcheck_fast_mode is True,
                check_forward_ad=self.supports_forward_ad,
                **({"masked": True} if self.has_sparse_gradients else {}),
            )
        )
        if self.check_gradgrad:
            test_case.assertTrue(
                gradgradcheck(
                    run,
                    input_tuple + params,
                    check_batched_grad=self.check_batched_grad,
                    fast_mode=self.gradcheck_fast_mode is True,
                    check_fwd_over_rev=self.supports_fwgrad_bwgrad,
                )
            )

    def _do_test(self, test_case: Any, module: Any, input: Any) -> None:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        given = input if isinstance(input, tuple) else (input,)
        kinds = {t.dtype for t in given if isinstance(t, torch.Tensor)}
        self._check_gradients(test_case, module, given)
        module(*given)
        if self.check_inplace:
            self._test_inplace(test_case, input)
        if all(t.is_floating_point() for t in given):
            for name, kind in (("float", torch.float32), ("double", torch.float64)):
                converted = getattr(module, name)()
                moved = tuple(getattr(t, name)() for t in given)
                converted(*moved)
                _parameters_are(converted, kind)
            if not self.skip_half:
                _parameters_are(module.half(), torch.float16)
                _parameters_are(module.to(torch.float32), torch.float32)
        elif not any(kind.is_complex for kind in kinds):
            for name, kind in (("float", torch.float32), ("double", torch.float64)):
                getattr(module, name)()
                module(*given)
                _parameters_are(module, kind)
        torch.set_num_threads(threads)

    def _test_inplace(self, test_case: Any, input: Any) -> None:
        """A module with `inplace=True` gives the same, and writes to its input."""
        plain = self.constructor(*self.constructor_args)
        writing = self.constructor(*self.constructor_args, inplace=True)
        version = input._version
        with torch.no_grad():
            expected = plain(input)
        test_case.assertEqual(input._version, version)
        copy = deepcopy(input)
        writable = copy.clone()
        found = writing(writable)
        test_case.assertNotEqual(writable._version, version)
        test_case.assertEqual(expected, found)
        vector = torch.randn_like(expected)
        input.grad = None
        plain(input).backward(vector)
        found.backward(vector)
        test_case.assertEqual(copy.grad, input.grad)

    def _get_target(self) -> Any:
        return self._get_arg("target", False)

    @property
    def constructor_args(self) -> Any:
        """The arguments of the module's class."""
        return self._get_arg("constructor_args", False)


def _parameters_are(module: Any, dtype: Any) -> None:
    for p in module.parameters():
        if p.dtype != dtype:
            raise AssertionError(f"a parameter is of {p.dtype}, not of {dtype}")


class CriterionTest(InputVariableMixin, TestBase):
    """A test of a loss: `target` beside the input."""

    _required_arg_names = TestBase._required_arg_names | {"target"}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.should_test_cuda = kwargs.get("test_cuda", True)
        self.check_forward_only = kwargs.get("check_forward_only", False)
        self.check_gradgrad = kwargs.get("check_gradgrad", True)
        self.check_half = kwargs.get("check_half", True)
        self.check_bfloat16 = kwargs.get("check_bfloat16", False)
        self.check_complex = kwargs.get("check_complex", False)
        self.test_cpu = kwargs.get("test_cpu", True)
        self.with_tf32 = kwargs.get("with_tf32", True)
        self.tf32_precision = kwargs.get("tf32_precision", 0.001)
        self.check_batched_grad = kwargs.get("check_batched_grad", True)
        self.default_dtype = kwargs.get("default_dtype") or torch.get_default_dtype()

    def __call__(self, test_case: Any) -> None:
        with set_default_dtype(self.default_dtype):
            module = self.constructor(*self.constructor_args)
            input, target = self._get_input(), self._get_target()
            module.__repr__()
            str(module)
            if self.reference_fn is not None:
                out = test_case._forward_criterion(
                    module, input, target, extra_args=self.extra_args
                )
                given = (deepcopy(input), deepcopy(target), *self.extra_args, module)
                expected = self.reference_fn(*given)
                test_case.assertEqual(out, expected)
            if self.check_forward_only:
                return
            self._check_gradients(test_case, module, input, target)

    def _check_gradients(
        self, test_case: Any, module: Any, input: Any, target: Any
    ) -> None:
        params = tuple(module.parameters())
        inputs = (*input, *params, target) if isinstance(input, tuple) else None
        inputs = inputs or (input, *params, target)
        count = len(params)

        def run(*given: Any) -> Any:
            *first, last = given
            first = first[: len(first) - count] if count else first
            return module(*first, last)

        test_case.assertTrue(
            gradcheck(run, inputs, check_batched_grad=self.check_batched_grad)
        )
        if self.check_gradgrad:
            test_case.assertTrue(
                gradgradcheck(run, inputs, check_batched_grad=self.check_batched_grad)
            )

    def test_cuda(self, test_case: Any, dtype: Any, extra_args: Any = None) -> None:
        """The same on a GPU as on the CPU."""
        if not torch.cuda.is_available() or not self.should_test_cuda:
            raise unittest.SkipTest("Excluded from CUDA tests")
        with set_default_dtype(self.default_dtype):
            module = self.constructor(*self.constructor_args).to(dtype)
            moved = deepcopy(module).cuda()
            convert = lambda t: t.to(dtype) if t.is_floating_point() else t  # noqa: E731
            input = _mapped(convert, self._get_input())
            target = _mapped(convert, self._get_target())
            found = test_case._forward_criterion(
                moved,
                _mapped(lambda t: t.cuda(), input),
                _mapped(lambda t: t.cuda(), target),
                extra_args=extra_args,
            )
            expected = test_case._forward_criterion(
                module, input, target, extra_args=extra_args
            )
            test_case.assertEqual(expected, found, atol=1e-1, rtol=0, exact_dtype=False)

    def _get_target(self) -> Any:
        return self._get_arg("target", False)

    @property
    def constructor_args(self) -> Any:
        """The arguments of the loss's class."""
        return self._get_arg("constructor_args", False)

    @property
    def extra_args(self) -> Any:
        """More arguments of a call."""
        return self._get_arg("extra_args", False)
