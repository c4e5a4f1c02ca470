"""`torch.testing._internal.common_nn`: helpers for tests of modules.

The tables of tests are empty: `common_modules` has a database of modules, and
`compat_suite modules` runs PyTorch's own.
"""

from __future__ import annotations

from typing import Any

import torchshim as torch
from torchshim.autograd.gradcheck import _get_numerical_jacobian
from torchshim.testing._internal._loss_references import *  # noqa: F403
from torchshim.testing._internal.common_utils import TestCase, freeze_rng_state

PRECISION = 1e-5
module_tests: list[dict[str, Any]] = []
criterion_tests: list[dict[str, Any]] = []
regression_criterion_no_batch: list[Any] = []
classification_criterion_no_batch: list[Any] = []


def get_new_module_tests() -> list[dict[str, Any]]:
    """No tests: see the module's text."""
    return []


def get_reduction(m: Any) -> str:
    """How a loss is reduced."""
    return m.reduction


def get_weight(m: Any) -> Any:
    """A loss's weights, if it has some."""
    return getattr(m, "weight", None)


def wrap_functional(fn: Any, **kwargs: Any) -> Any:
    """A class of modules that call a function."""

    class FunctionalModule(torch.nn.Module):
        def forward(self, *args: Any) -> Any:
            return fn(*args, **kwargs)

    return FunctionalModule


def single_batch_reference_fn(input: Any, parameters: Any, module: Any) -> Any:
    """What a module gives for a batch of one, without the batch."""
    batch = lambda x: x.unsqueeze(0) if isinstance(x, torch.Tensor) else x  # noqa: E731
    given = (
        [batch(x) for x in input]
        if isinstance(input, (list, tuple))
        else [batch(input)]
    )
    with freeze_rng_state():
        return module(*given).squeeze(0)


class NNTestCase(TestCase):
    """Compares the gradients of modules with finite differences."""

    def _forward(self, module: Any, input: Any) -> Any:
        raise NotImplementedError

    def _get_parameters(self, module: Any) -> tuple[list[Any], list[Any]]:
        raise NotImplementedError

    def _zero_grad_parameters(self, module: Any) -> None:
        raise NotImplementedError

    def _backward(self, module: Any, input: Any, output: Any, grad_output: Any) -> Any:
        raise NotImplementedError

    def _flatten_tensors(self, x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            return (x.to_dense() if x.is_sparse else x).view(-1)
        return tuple(self._flatten_tensors(each) for each in x)

    def _zero_grad_input(self, input: Any) -> None:
        if isinstance(input, torch.Tensor):
            if input.requires_grad and input.grad is not None:
                input.grad.zero_()
                input.grad.detach_()
        else:
            for each in input:
                self._zero_grad_input(each)

    def _tracked(self, x: Any) -> list[Any]:
        if isinstance(x, torch.Tensor):
            return [x] if x.requires_grad else []
        return [t for each in x for t in self._tracked(each)]

    def _analytical_jacobian(
        self,
        module: Any,
        input: Any,
        jacobian_input: bool = True,
        jacobian_parameters: bool = True,
    ) -> tuple[Any, ...]:
        output = self._forward(module, input)
        _, d_parameters = self._get_parameters(module)
        columns: list[list[Any]] = []
        for i in range(output.numel()):
            self._zero_grad_parameters(module)
            self._zero_grad_input(input)
            vector = torch.zeros_like(output)
            vector.view(-1)[i] = 1
            found = self._backward(module, input, output, vector)
            row = []
            if jacobian_input:
                grads = [found] if isinstance(found, torch.Tensor) else list(found)
                row += [g.reshape(-1).clone() for g in grads if g is not None]
            if jacobian_parameters:
                row += [g.reshape(-1).clone() for g in d_parameters]
            columns.append(row)
        return tuple(torch.stack(parts, 1) for parts in zip(*columns, strict=True))

    def _numerical_jacobian(
        self,
        module: Any,
        input: Any,
        jacobian_input: bool = True,
        jacobian_parameters: bool = True,
    ) -> tuple[Any, ...]:
        def forward(*given: Any) -> Any:
            with freeze_rng_state():
                return self._forward(module, given[0] if len(given) == 1 else given)

        given = (input,) if isinstance(input, torch.Tensor) else tuple(input)
        found: list[Any] = []
        if jacobian_input:
            found += _get_numerical_jacobian(forward, given, target=given, eps=1e-6)
        if jacobian_parameters:
            parameters, _ = self._get_parameters(module)
            found += _get_numerical_jacobian(
                forward, given, target=parameters, eps=1e-6
            )
        return tuple(each[0] for each in found)

    def check_jacobian(
        self, module: Any, input: Any, jacobian_input: bool = True
    ) -> None:
        """Compares gradients by input and parameters with finite differences."""
        parameters = bool(self._get_parameters(module)[0])
        analytical = self._analytical_jacobian(
            module, input, jacobian_input, parameters
        )
        numerical = self._numerical_jacobian(module, input, jacobian_input, parameters)
        for a, n in zip(analytical, numerical, strict=True):
            if a.numel():
                self.assertLessEqual((a - n).abs().max(), PRECISION)


class TestBase:
    """A test of a module: `constructor_args`, `input_size` and others."""

    def __init__(
        self,
        constructor: Any,
        desc: str = "",
        reference_fn: Any = None,
        fullname: str | None = None,
        **kwargs: Any,
    ) -> None:
        self.constructor = constructor
        self.desc = desc
        self.reference_fn = reference_fn
        self.fullname = fullname
        self._arguments = kwargs

    def get_name(self) -> str:
        """The name of the test."""
        if self.fullname is not None:
            return f"test_{self.fullname}"
        tail = f"_{self.desc}" if self.desc else ""
        return f"test_{self.constructor.__name__}{tail}"

    @property
    def constructor_args(self) -> Any:
        """The arguments of the module's class."""
        return self._arguments.get("constructor_args", ())

    def _get_input(self) -> Any:
        made = self._arguments.get("input")
        if made is None and "input_fn" in self._arguments:
            made = self._arguments["input_fn"]()
        if made is None:
            made = torch.randn(self._arguments["input_size"], dtype=torch.double)
        if isinstance(made, torch.Tensor) and made.is_floating_point():
            made = made.detach().clone().requires_grad_()
        return made

    def __call__(self, test_case: Any) -> None:
        module = self.constructor(*self.constructor_args).double()
        given = self._get_input()
        out = test_case._forward(module, given)
        if self.reference_fn is not None:
            parameters = test_case._get_parameters(module)[0]
            expected = self.reference_fn(given, parameters, module)
            test_case.assertEqual(out, expected, exact_dtype=False)
        test_case.check_jacobian(module, given)


class NewModuleTest(TestBase):
    """A test of a module."""


class CriterionTest(TestBase):
    """A test of a loss: `target` or `target_fn` beside the input."""

    def __call__(self, test_case: Any) -> None:
        module = self.constructor(*self.constructor_args).double()
        given = self._get_input()
        target = self._arguments.get("target")
        if target is None:
            target = self._arguments["target_fn"]()
        out = module(given, target)
        if self.reference_fn is not None:
            test_case.assertEqual(out, self.reference_fn(given, target, module))
        test_case.assertTrue(
            torch.autograd.gradcheck(lambda x: module(x, target), (given,))
        )


def _test_bfloat16_ops(
    test_case: Any,
    op: Any,
    device: Any,
    inp_dims: Any = (),
    prec: float = 1e-2,
    scale_factor: Any = None,
) -> None:
    """A module gives nearly the same in bfloat16 as in float32, gradients too."""
    first = torch.randn(inp_dims, dtype=torch.float32, device=device)
    first = first if scale_factor is None else first * scale_factor
    wide = first.clone().requires_grad_()
    small = first.bfloat16().requires_grad_()
    expected, found = op(wide), op(small)
    test_case.assertEqual(expected, found, atol=prec, rtol=prec, exact_dtype=False)
    vector = torch.randn_like(expected)
    expected.backward(vector)
    found.backward(vector.bfloat16())
    test_case.assertEqual(
        wide.grad, small.grad, atol=prec, rtol=prec, exact_dtype=False
    )


def _test_module_empty_input(
    test_case: Any,
    module: Any,
    inp: Any,
    check_size: bool = True,
    inference: bool = False,
) -> None:
    """A module takes an empty input, and gives gradients for it."""
    if not inference:
        inp.requires_grad_(True)
    out = module(inp)
    if not inference:
        out.backward(torch.rand_like(out))
    if check_size:
        test_case.assertEqual(out.size(), inp.size())
    if not inference:
        for p in module.parameters():
            if p.requires_grad and p.grad is not None:
                test_case.assertEqual(p.grad, torch.zeros_like(p.grad))
        test_case.assertEqual(inp.grad, torch.zeros_like(inp))


def _create_basic_net() -> tuple[Any, Any, Any]:
    """A layer, a net of it, and a sequence of the net twice."""

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer_dummy_param = torch.nn.Parameter(torch.empty(3, 5))
            self.layer_dummy_buf = torch.nn.Buffer(torch.zeros(1, 3, 3, 7))

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.l1 = Layer()
            self.dummy_param = torch.nn.Parameter(torch.empty(3, 5))
            self.dummy_buf = torch.nn.Buffer(torch.zeros(7, 3, 3, 1))

    layer, net = Layer(), Net()
    return layer, net, torch.nn.Sequential(net, net)
