"""`TestGradients`: gradients of an operator's samples, compared with differences."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torchshim as torch
from torchshim.testing._internal._conditions import TEST_WITH_SLOW_GRADCHECK
from torchshim.testing._internal._test_case import TestCase


def _needs_grad(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def _places(values: list[Any]) -> list[tuple[Any, ...]]:
    """Where tensors that require grad are: among arguments, or in a list of them."""
    found: list[tuple[Any, ...]] = []
    for i, value in enumerate(values):
        if _needs_grad(value):
            found.append((i,))
        elif isinstance(value, (list, tuple)):
            found += [(i, j) for j, v in enumerate(value) if _needs_grad(v)]
    return found


class TestGradients(TestCase):
    """What tests of operators' gradients are based on."""

    exact_dtype = True

    def _get_safe_inplace(self, inplace_variant: Any) -> Any:
        @functools.wraps(inplace_variant)
        def run(t: Any, *args: Any, **kwargs: Any) -> Any:
            return inplace_variant(t.clone(), *args, **kwargs)

        return run

    def _check_helper(
        self,
        device: Any,
        dtype: Any,
        op: Any,
        variant: Any,
        check: str,
        *,
        check_forward_ad: bool = False,
        check_backward_ad: bool = True,
        check_batched_grad: bool | None = None,
        check_batched_forward_grad: bool = False,
    ) -> None:
        if check not in ("gradcheck", "bwgrad_bwgrad", "fwgrad_bwgrad"):
            raise AssertionError(
                "check must be one of ('gradcheck', 'bwgrad_bwgrad', 'fwgrad_bwgrad'), "
                f"got {check!r}"
            )
        if variant is None:
            self.skipTest("Skipped! Variant not implemented.")
        if not op.supports_dtype(dtype, torch.device(device).type):
            self.skipTest(f"Skipped! {op.name} does not support dtype {dtype}")
        in_place = op.get_inplace()
        is_inplace = getattr(variant, "__wrapped__", variant) is in_place
        samples = op.sample_inputs(
            device,
            dtype,
            requires_grad=True,
            include_conjugated_inputs=op.test_conjugated_samples and dtype.is_complex,
            small_inputs_only=TEST_WITH_SLOW_GRADCHECK,
        )
        first: dict[str, Any] = {
            "check_grad_dtypes": True,
            "nondet_tol": op.gradcheck_nondet_tol,
            "fast_mode": op.gradcheck_fast_mode,
        }
        for sample in samples:
            if sample.broadcasts_input and in_place is not None and is_inplace:
                continue
            fn, inputs = _function_of(op, variant, sample)
            for t in inputs:
                self.assertIsNone(t.grad, "a tensor is part of several samples")
            if check == "gradcheck":
                batched = check_batched_grad
                self._checks(
                    torch.autograd.gradcheck,
                    fn,
                    inputs,
                    **first,
                    check_batched_grad=op.check_batched_grad
                    if batched is None
                    else batched,
                    check_forward_ad=check_forward_ad,
                    check_backward_ad=check_backward_ad,
                    check_undefined_grad=True,
                    check_batched_forward_grad=check_batched_forward_grad,
                )
                continue
            self.assertFalse(check_forward_ad)
            second = first | {"check_batched_grad": op.check_batched_gradgrad}
            if check == "fwgrad_bwgrad":
                second |= {"check_fwd_over_rev": True, "check_rev_over_rev": False}
                second |= {"check_batched_grad": False, "check_undefined_grad": False}
            for apart in (False, True):
                second["gen_non_contig_grad_outputs"] = apart
                self._checks(torch.autograd.gradgradcheck, fn, inputs, **second)

    def _checks(self, check: Any, fn: Any, inputs: Any, **kwargs: Any) -> None:
        fast = not TEST_WITH_SLOW_GRADCHECK
        if kwargs["fast_mode"] is None:
            kwargs["fast_mode"] = fast
        self.assertTrue(check(fn, inputs, **kwargs))

    def _grad_test_helper(
        self, device: Any, dtype: Any, op: Any, variant: Any, **kwargs: Any
    ) -> None:
        self._check_helper(device, dtype, op, variant, "gradcheck", **kwargs)

    def _skip_helper(self, op: Any, device: Any, dtype: Any) -> None:
        if dtype not in op.supported_backward_dtypes(torch.device(device).type):
            self.skipTest("Skipped! Op doesn't support autograd for this dtype.")
        if not op.supports_autograd and not op.supports_forward_ad:
            self.skipTest("Skipped! autograd not supported.")


def _function_of(
    op: Any, variant: Any, sample: Any
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function of those tensors of a sample that require grad, and these."""
    values = [sample.input, *sample.args, *sample.kwargs.values()]
    places = _places(values)
    names = list(sample.kwargs)

    def fn(*inputs: Any) -> Any:
        given = [list(v) if isinstance(v, (list, tuple)) else v for v in values]
        # Lists without such tensors stay what they were.
        touched = {place[0] for place in places}
        given = [g if i in touched else values[i] for i, g in enumerate(given)]
        for (i, *inner), value in zip(places, inputs, strict=True):
            if inner:
                given[i][inner[0]] = value
            else:
                given[i] = value
        count = len(given) - len(names)
        named = dict(zip(names, given[count:], strict=True))
        output = op.gradcheck_wrapper(variant, *given[:count], **named)
        process = sample.output_process_fn_grad
        return output if process is None else process(output)

    inputs = [values[i][inner[0]] if inner else values[i] for i, *inner in places]
    return fn, tuple(inputs)
