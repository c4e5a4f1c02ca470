"""`torch.testing._internal.common_nn`: tests of modules, and helpers for others."""

from __future__ import annotations

from typing import Any

import torchshim as torch
from torchshim.autograd.gradcheck import _get_numerical_jacobian
from torchshim.testing._internal._loss_references import *  # noqa: F403
from torchshim.testing._internal._loss_rows import (
    classification_criterion_no_batch as classification_criterion_no_batch,
)
from torchshim.testing._internal._loss_rows import criterion_rows
from torchshim.testing._internal._loss_rows import (
    regression_criterion_no_batch as regression_criterion_no_batch,
)
from torchshim.testing._internal._loss_rows import (
    single_batch_reference_criterion_fn as single_batch_reference_criterion_fn,
)
from torchshim.testing._internal._loss_rows import wrap_functional as wrap_functional
from torchshim.testing._internal._module_test_cases import (
    CriterionTest as CriterionTest,
)
from torchshim.testing._internal._module_test_cases import (
    InputVariableMixin as InputVariableMixin,
)
from torchshim.testing._internal._module_test_cases import ModuleTest as ModuleTest
from torchshim.testing._internal._module_test_cases import (
    NewModuleTest as NewModuleTest,
)
from torchshim.testing._internal._module_test_cases import TestBase as TestBase
from torchshim.testing._internal._module_tests import module_rows, new_module_rows
from torchshim.testing._internal._module_tests import (
    single_batch_reference_fn as single_batch_reference_fn,
)
from torchshim.testing._internal.common_utils import TestCase, freeze_rng_state

PRECISION = 1e-5
module_tests = module_rows()
criterion_tests = criterion_rows()


def get_new_module_tests() -> list[dict[str, Any]]:
    """Rows of modules and functions, made anew."""
    return new_module_rows()


def get_reduction(m: Any) -> str:
    """How a loss is reduced."""
    return m.reduction


def get_weight(m: Any) -> Any:
    """A loss's weights, if it has some."""
    return getattr(m, "weight", None)


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
                for p, g in zip(*self._get_parameters(module), strict=True):
                    got = torch.zeros_like(p) if g is None else g
                    row.append(got.reshape(-1).clone())
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


def _test_bfloat16_ops(
    test_case: Any,
    op: Any,
    device: Any,
    inp_dims: Any = (),
    prec: float = 1e-2,
    scale_factor: Any = None,
) -> None:
    """A module gives nearly the same in bfloat16 as in float32, gradients too.

    Scaled values are uniform, and in bfloat16 from the start: rounding moves large
    ones by more than a softmax takes.
    """
    if scale_factor is None:
        wide = torch.randn(inp_dims, dtype=torch.float32, device=device)
    else:
        scaled = torch.rand(inp_dims, dtype=torch.bfloat16, device=device)
        wide = (scaled * scale_factor).float()
    wide.requires_grad_()
    small = wide.detach().bfloat16().requires_grad_()
    expected = op(wide)
    found = op.bfloat16()(small)
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
