"""The databases for test files: what they say is so."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import torchshim as torch
from tests.oracle import attempt
from torchshim.testing._internal import common_methods_invocations
from torchshim.testing._internal.common_methods_invocations import (
    foreach_binary_op_db,
    foreach_other_op_db,
    foreach_pointwise_op_db,
    foreach_reduce_op_db,
    foreach_unary_op_db,
    op_db,
    reduction_ops,
    spectral_funcs,
)
from torchshim.testing._internal.common_modules import module_db
from torchshim.testing._internal.common_optimizers import OptimizerErrorEnum, optim_db


@pytest.mark.parametrize("info", optim_db, ids=lambda info: info.name)
def test_what_optimizers_refuse(info):
    for refused in info.optim_error_inputs_func("cpu", torch.float32):
        given = refused.optimizer_error_input
        with (
            warnings.catch_warnings(),
            pytest.raises(refused.error_type, match=refused.error_regex),
        ):
            warnings.simplefilter("error")
            params = [torch.randn(2, 2)] if given.params is None else given.params
            optimizer = info.optim_cls(params, **given.kwargs)
            if refused.error_on is OptimizerErrorEnum.STEP_ERROR:
                optimizer.step()


def test_modules_are_made():
    for info in module_db:
        for given in info.module_inputs_func(info, "meta", torch.float32, False, True):
            made = given.constructor_input
            info.module_cls(*made.args, **made.kwargs)


@pytest.mark.filterwarnings("ignore:Complex modules")
@pytest.mark.parametrize("info", module_db, ids=lambda i: i.name)
def test_modules_take_their_inputs(info):
    for dtype in info.dtypes:
        for given in info.module_inputs_func(info, "cpu", dtype, True, True):
            made, inputs = given.constructor_input, given.forward_input
            module = info.module_cls(*made.args, **made.kwargs).to(dtype)
            out = module(*inputs.args, **inputs.kwargs)
            first = out[0] if isinstance(out, tuple) else out
            assert first.dtype == dtype and first.isfinite().all()


def test_operators_are_named():
    assert all(callable(op.op) and op.dtypes for op in op_db)
    assert len({op.formatted_name for op in op_db}) == len(op_db)


@pytest.mark.parametrize("info", spectral_funcs, ids=lambda info: info.name)
def test_transforms_agree_with_their_references(info):
    for sample in info.sample_inputs("cpu", torch.float64):
        found = info(sample.input, *sample.args, **sample.kwargs)
        given = {"axis" if k == "dim" else k: v for k, v in sample.kwargs.items()}
        if isinstance(given.get("axis"), tuple) or info.name[-1] in "2n":
            axes = given.pop("axis", None)
            axes = (axes,) if isinstance(axes, int) else axes
            if axes is None and info.name.endswith("2"):
                axes = (-2, -1)
            if axes is None and "s" in given:
                axes = tuple(range(-len(given["s"]), 0))
            given["axes"] = axes
        expected = info.ref(sample.input.numpy(), *sample.args, **given)
        torch.testing.assert_close(found, torch.from_numpy(expected))
    for refused in info.error_inputs("cpu"):
        sample = refused.sample_input
        with pytest.raises(refused.error_type, match=refused.error_regex):
            info(sample.input, **sample.kwargs)


@pytest.mark.filterwarnings("ignore:.*degrees of freedom", "ignore:Degrees")
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("info", reduction_ops, ids=lambda info: info.formatted_name)
def test_reductions_agree_with_what_is_said_of_them(info):
    x = torch.tensor([[1.5, -2.0, 3.0], [0.5, 4.0, 1.0]], dtype=torch.float64)
    args, options = next(info.generate_args_kwargs(x))
    assert info(x, *args, **options).dtype is (info.result_dtype or x.dtype)
    for sample in info.sample_inputs("cpu", torch.float64):
        found = info(sample.input, *sample.args, **sample.kwargs)
        if info.ref is not None:
            expected = info.ref(sample.input.numpy(), *sample.args, **sample.kwargs)
            assert found.shape == expected.shape
            torch.testing.assert_close(
                found.double(), torch.tensor(expected).double(), equal_nan=True
            )
    if info.identity is not None:
        empty = x.new_empty(0)
        args, options = next(info.generate_args_kwargs(empty))
        assert info(empty, *args, **options) == info.identity
    if info.nan_policy == "propagate":
        x[0, 0] = float("nan")
        assert info(x, *args, **options).isnan()


def test_operators_on_lists_are_what_they_are_of_single_tensors():
    for op in (
        *foreach_unary_op_db,
        *foreach_binary_op_db,
        *foreach_pointwise_op_db,
        *foreach_reduce_op_db,
        *foreach_other_op_db,
    ):
        assert callable(op.op) and callable(op.ref), op.name
        assert op.has_no_in_place or callable(op.ref_inplace), op.name
        samples: list[Any] = list(
            op.sample_inputs("cpu", torch.float64, num_input_tensors=[4], high=3, low=1)
        )
        assert samples, op.name
        for sample in samples:
            lists = (sample.input, *sample.ref_args)
            options = dict(sample.kwargs)
            numbers = options.pop("scalars", None)
            rows = list(zip(*lists, strict=True))
            more = [{} if numbers is None else {"value": n} for n in numbers or rows]

            def refs(op=op, rows=rows, options=options, more=more):
                pairs = zip(rows, more, strict=True)
                return [op.ref(*row, **options, **one) for row, one in pairs]

            def every(op=op, sample=sample):
                return op(list(sample.input), *sample.args, **sample.kwargs)

            found, expected = attempt(every), attempt(refs)
            if isinstance(expected, Exception):
                assert str(found) == str(expected)
            else:
                torch.testing.assert_close(list(found), expected, equal_nan=True)


@pytest.mark.parametrize(
    "info", [i for i in module_db if i.module_error_inputs_func], ids=lambda i: i.name
)
def test_what_modules_refuse(info):
    found = info.module_error_inputs_func(info, device="cpu", dtype=torch.float32)
    assert found
    for each in found:
        made, given = each.module_error_input.constructor_input, None
        with pytest.raises(each.error_type, match=each.error_regex):
            module = info.module_cls(*made.args, **made.kwargs)
            assert each.error_on.name == "FORWARD_ERROR"
            given = each.module_error_input.forward_input
            module(*given.args, **given.kwargs).sum().item()
        assert (given is None) == (each.error_on.name == "CONSTRUCTION_ERROR")


def test_reference_tests_are_skipped_where_numpy_differs():
    named = {op.name: op for op in common_methods_invocations.unary_ufuncs}
    found = {
        (each.test_name.rpartition("_")[2], dtype)
        for each in named["sinh"].decorators
        for dtype in each.dtypes
    }
    assert found == {("large", torch.int8), ("large", torch.complex128)}
    assert not named["sin"].decorators
    value = torch.tensor([True, False])
    assert torch.equal(value.sign(), torch.from_numpy(named["sign"].ref(value.numpy())))


def test_samples_with_numbers():
    given = {"device": "cpu", "dtype": torch.float32}
    named = {op.name: op for op in common_methods_invocations.binary_ufuncs}
    make = common_methods_invocations.generate_elementwise_binary_with_scalar_samples
    kinds = [
        (torch.is_tensor(s.input), torch.is_tensor(s.args[0]))
        for s in make(named["add"], **given)
    ]
    assert kinds == [(True, False)] * 5 + [(False, True), (False, False)]
    assert not list(make(named["logical_and"], **given))
    name = "generate_elementwise_binary_with_scalar_and_type_promotion_samples"
    extremes = getattr(common_methods_invocations, name)
    assert len(list(extremes(named["lt"], **given))) == 6
    assert not list(extremes(named["add"], **given))
