"""The tables of `common_nn`, and the tests that are made of their rows."""

from __future__ import annotations

import importlib

import pytest

import torchshim
from tests.oracle import case
from torchshim.testing._internal.common_utils import freeze_rng_state


def _common_nn(torch):
    return importlib.import_module(f"{torch.__name__}.testing._internal.common_nn")


def _told(torch, row):
    skipped = ("cpp_", "test_cuda", "cudnn", "with_tf32", "tf32_", "default_dtype")
    args = row.get("constructor_args", ())
    return (
        row.get("fullname", row.get("module_name")),
        row.get("desc"),
        [a for a in args if isinstance(a, (int, float, str, tuple))],
        row.get("input_size"),
        row.get("output_size"),
        row.get("check_gradgrad"),
        row.get("supports_forward_ad"),
        row.get("pickle"),
        sorted(name for name in row if not name.startswith(skipped)),
    )


# Where rows are written otherwise: the input is made anew, a precision is not needed.
_OTHERWISE = ("ignore_index_neg", "BCELoss_no_reduce_scalar", "s_no_reduce_scalar")


@case
def rows(torch):
    tables = _common_nn(torch)
    new = tables.get_new_module_tests()
    for table in (tables.module_tests, new, tables.criterion_tests):
        told = [_told(torch, row) for row in table]
        yield len(told)
        yield sorted(repr(t) for t in told if not str(t[0]).endswith(_OTHERWISE))
    yield tables.regression_criterion_no_batch
    yield [name for name, _, _ in tables.classification_criterion_no_batch]


class _Harness:
    """The methods that PyTorch's `TestNN` has."""

    def _forward(self, module, input):
        with freeze_rng_state():  # what draws numbers draws the same again
            return module(*input) if isinstance(input, tuple) else module(input)

    def _backward(self, module, input, output, grad_output):
        output.backward(grad_output, retain_graph=True)
        several = input if isinstance(input, tuple) else (input,)
        grads = tuple(None if i.grad is None else i.grad.data for i in several)
        return grads if isinstance(input, tuple) else grads[0]

    def _forward_criterion(self, criterion, input, target, extra_args=()):
        given = input if isinstance(input, tuple) else (input,)
        return criterion(*given, target, *extra_args)

    def _zero_grad_parameters(self, module):
        module.zero_grad(set_to_none=False)

    def _get_parameters(self, module):
        params = list(module.parameters())
        return params, [p.grad for p in params]


NAMES = (
    "Linear",
    "Linear_no_bias",
    "Embedding",
    "PairwiseDistance",
    "ELU_no_batch_dim",
)
NAMES += ("NLLLoss_no_reduce_weights", "MultiMarginLoss_1d_no_reduce", "Conv1d_stride")
NAMES += ("KLDivLoss_no_reduce_scalar", "interpolate_linear_1d", "BCELoss_no_reduce")
NAMES += ("RReLU",)  # draws numbers


def _tests(torch):
    tables = _common_nn(torch)
    for row in tables.module_tests + tables.get_new_module_tests():
        row = dict(row)
        if "constructor" not in row:
            row["constructor"] = getattr(torch.nn, row.pop("module_name"))
        decorate = row.pop("decorator", None)
        yield tables.NewModuleTest(**row), decorate


@pytest.mark.parametrize("name", NAMES)
def test_of_a_module(name):
    tables = _common_nn(torchshim)
    harness = type("Harness", (_Harness, tables.NNTestCase), {"runTest": None})()
    (test,) = [t for t, _ in _tests(torchshim) if t.get_name() == f"test_{name}"]
    test(harness)


def test_what_is_wrong_is_found():
    tables = _common_nn(torchshim)
    harness = type("Harness", (_Harness, tables.NNTestCase), {"runTest": None})()
    make = lambda: torchshim.nn.Linear(2, 3)  # noqa: E731
    double = {"default_dtype": torchshim.float64, "input_size": (4, 2), "fullname": "x"}
    wrong = tables.NewModuleTest(
        make, reference_fn=lambda i, p, m: i @ p[0].T, **double
    )
    with pytest.raises(AssertionError):
        wrong(harness)

    class Detached(torchshim.nn.Linear):
        def forward(self, x):
            return super().forward(x) + 2 * self.weight.detach().sum()

    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        tables.NewModuleTest(lambda: Detached(2, 3), pickle=False, **double)(harness)
    with pytest.raises(ValueError, match="Specify input by a value"):
        tables.NewModuleTest(make, fullname="y")


@pytest.mark.parametrize("at", range(0, 48, 5))
def test_of_a_loss(at):
    tables = _common_nn(torchshim)
    harness = type("Harness", (_Harness, tables.NNTestCase), {"runTest": None})()
    tables.CriterionTest(**tables.criterion_tests[at])(harness)
