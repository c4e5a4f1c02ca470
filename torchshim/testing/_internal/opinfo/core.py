"""What is known of one operator, and the arguments that tests give it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import torchshim as torch
from torchshim import _pytree as tree
from torchshim.testing._internal._databases import DecorateInfo as DecorateInfo
from torchshim.testing._internal._databases import decorators_for
from torchshim.testing._internal._sample_rules import *  # noqa: F403


class SampleInput:
    """Arguments of an operator."""

    __slots__ = (
        "args",
        "broadcasts_input",
        "input",
        "kwargs",
        "name",
        "output_process_fn_grad",
    )

    def __init__(
        self,
        input: Any,
        *var_args: Any,
        args: Any = None,
        kwargs: dict[str, Any] | None = None,
        output_process_fn_grad: Callable[[Any], Any] | None = None,
        broadcasts_input: bool | None = None,
        name: str | None = None,
        **var_kwargs: Any,
    ) -> None:
        if args is not None or kwargs is not None:
            if var_args or var_kwargs:
                raise AssertionError(
                    "A SampleInput can be constructed 'naturally' with *args and "
                    "**kwargs or by explicitly setting the 'args' and 'kwargs' "
                    "parameters, but the two methods of construction cannot be mixed!"
                )
        elif (var_args or var_kwargs) and not (
            output_process_fn_grad is broadcasts_input is name is None
        ):
            raise AssertionError(
                "A SampleInput constructed 'naturally' with *args and **kwargs cannot "
                "specify additional metadata in keyword arguments"
            )
        self.input = input
        self.args = args if args is not None else var_args
        if not isinstance(self.args, tuple):
            raise AssertionError(f"Expected args to be tuple, got {type(self.args)}")
        self.kwargs = kwargs if kwargs is not None else var_kwargs
        if not isinstance(self.kwargs, dict):
            raise AssertionError(f"Expected kwargs to be dict, got {type(self.kwargs)}")
        self.output_process_fn_grad = output_process_fn_grad or (lambda x: x)
        self.broadcasts_input = bool(broadcasts_input)
        self.name = name or ""

    def with_metadata(
        self,
        *,
        output_process_fn_grad: Any = None,
        broadcasts_input: bool | None = None,
        name: str | None = None,
    ) -> SampleInput:
        """The same object, with more told of it."""
        if output_process_fn_grad is not None:
            self.output_process_fn_grad = output_process_fn_grad
        if broadcasts_input is not None:
            self.broadcasts_input = broadcasts_input
        if name is not None:
            self.name = name
        return self

    def __repr__(self) -> str:
        return (
            f"SampleInput(input={self.input}, args={self.args}, kwargs={self.kwargs}, "
            f"broadcasts_input={self.broadcasts_input}, name={self.name!r})"
        )

    def summary(self) -> str:
        """Shapes and dtypes in the place of tensors."""
        told = [_shown(each) for each in (self.input, self.args, self.kwargs)]
        return (
            f"SampleInput(input={told[0]}, args={told[1]}, kwargs={told[2]}, "
            f"broadcasts_input={self.broadcasts_input}, name={self.name!r})"
        )

    def transform(self, f: Callable[[Any], Any]) -> SampleInput:
        """Arguments whose tensors, dtypes and texts went through a function."""
        kinds = (torch.Tensor, torch.dtype, str)

        def each(value: Any) -> Any:
            return f(value) if isinstance(value, kinds) else value

        given = tree.tree_map(each, (self.input, self.args, self.kwargs))
        made, args, kwargs = given
        return SampleInput(
            made,
            args=args,
            kwargs=kwargs,
            output_process_fn_grad=self.output_process_fn_grad,
            broadcasts_input=self.broadcasts_input,
            name=f"{self.name}_transformed",
        )

    def numpy(self) -> SampleInput:
        """The arguments as NumPy has them."""
        return self.transform(_as_numpy)

    def noncontiguous(self) -> SampleInput:
        """The arguments as tensors that are not contiguous."""
        from torchshim.testing._internal.common_utils import noncontiguous_like

        tensors = torch.Tensor
        return self.transform(
            lambda t: noncontiguous_like(t) if isinstance(t, tensors) else t
        )


def _conjugated(tensor: Any) -> Any:
    return tensor.conj().requires_grad_(tensor.requires_grad)


def _shown(value: Any) -> Any:
    """A value as a summary has it: tensors by size and kind."""
    if isinstance(value, torch.Tensor):
        sparse = value.is_sparse or value.layout == torch.sparse_csr
        apart = "" if sparse or value.is_contiguous() else ", contiguous=False"
        kind = f'device="{value.device}", dtype={value.dtype}{apart}'
        return f"Tensor[size={tuple(value.shape)}, {kind}]"
    if isinstance(value, dict):
        return {key: _shown(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_shown(each) for each in value]
        if value and all(isinstance(each, torch.Tensor) for each in value):
            return f"TensorList[{', '.join(items)}]"
        return f"({','.join(map(str, items))})"
    return repr(value)


def _as_numpy(value: Any) -> Any:
    from torchshim.testing._internal.common_utils import torch_to_numpy_dtype_dict

    if isinstance(value, torch.Tensor):
        small = value.dtype is torch.bfloat16
        return (value.float() if small else value).detach().cpu().resolve_conj().numpy()
    return torch_to_numpy_dtype_dict[value] if isinstance(value, torch.dtype) else value


class ErrorInput:
    """Arguments that an operator refuses, and its error."""

    __slots__ = ("error_regex", "error_type", "sample_input")

    def __init__(
        self,
        sample_input: SampleInput,
        *,
        error_type: type[BaseException] = RuntimeError,
        error_regex: str,
    ) -> None:
        self.sample_input = sample_input
        self.error_type = error_type
        self.error_regex = error_regex


class OpInfo:
    """What is known of an operator."""

    def __init__(
        self,
        name: str,
        *,
        op: Callable[..., Any] | None = None,
        variant_test_name: str = "",
        ref: Callable[..., Any] | None = None,
        dtypes: Iterable[Any] = (),
        backward_dtypes: Iterable[Any] | None = None,
        sample_inputs_func: Callable[..., Iterable[SampleInput]] | None = None,
        error_inputs_func: Callable[..., Iterable[ErrorInput]] | None = None,
        skips: Sequence[Any] = (),
        decorators: Sequence[Any] = (),
        supports_out: bool = True,
        supports_autograd: bool = True,
        supports_forward_ad: bool = True,
        supports_inplace: bool = True,
        **known: Any,
    ) -> None:
        self.name = name
        self.variant_test_name = variant_test_name
        found: Any = torch
        for part in name.split("."):
            found = getattr(found, part, None)
        self.op = op if op is not None else found
        self.ref = ref
        self.dtypes = frozenset(dtypes)
        kinds = (d for d in self.dtypes if d.is_floating_point or d.is_complex)
        wanted = kinds if backward_dtypes is None else backward_dtypes
        self.backward_dtypes = frozenset(wanted if supports_autograd else ())
        self.sample_inputs_func = sample_inputs_func
        self.error_inputs_func = error_inputs_func
        self.decorators = (*decorators, *skips)
        self.supports_out = supports_out
        self.supports_autograd = self.supports_gradgrad = supports_autograd
        self.supports_forward_ad = supports_forward_ad
        self.supports_fwgrad_bwgrad = supports_autograd and supports_forward_ad
        self.supports_sparse = self.supports_sparse_csr = False
        self.supports_sparse_csc = False
        self.supports_sparse_bsr = self.supports_sparse_bsc = False
        self.test_neg_view = self.test_conjugated_samples = False
        self.check_batched_grad = self.check_batched_gradgrad = True
        self.check_batched_forward_grad = True
        self.check_inplace_batched_forward_grad = True
        self.gradcheck_fast_mode = None
        self.gradcheck_nondet_tol = 0.0
        self.gradcheck_wrapper = lambda op, *args, **kwargs: op(*args, **kwargs)
        self.aliases: tuple[Any, ...] = ()
        self.is_factory_function = False
        self.test_neg_view = True
        tail = name.rpartition(".")[2]
        inplace = getattr(torch.Tensor, f"{tail}_", None) if supports_inplace else None
        self.method_variant = getattr(torch.Tensor, tail, None)
        self.inplace_variant = inplace
        self.operator_variant = self.inplace_operator_variant = None
        self.__dict__.update(known)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.op(*args, **kwargs)

    def __str__(self) -> str:
        return f"OpInfo(name={self.name!r}, variant_test_name={self.variant_test_name})"

    @property
    def full_name(self) -> str:
        """The name with that of the variant."""
        tail = self.variant_test_name
        return f"{self.name}{'.' + tail if tail else ''}"

    @property
    def formatted_name(self) -> str:
        """The full name, fit for the name of a test."""
        return self.full_name.replace(".", "_")

    def get_op(self) -> Callable[..., Any]:
        """The function."""
        return self.op

    def get_method(self) -> Any:
        """The method of tensors, or None."""
        return self.method_variant

    def get_inplace(self) -> Any:
        """The method in place, or None."""
        return self.inplace_variant

    def get_operator(self) -> Any:
        """Python's operator, or None."""
        return self.operator_variant

    def get_inplace_operator(self) -> Any:
        """Python's operator in place, or None."""
        return self.inplace_operator_variant

    def supported_dtypes(self, device_type: Any) -> frozenset[Any]:
        """The dtypes it takes."""
        return self.dtypes

    def supported_backward_dtypes(self, device_type: Any) -> frozenset[Any]:
        """The dtypes in which it has gradients."""
        return self.backward_dtypes

    def supports_dtype(self, dtype: Any, device_type: Any) -> bool:
        """Whether it takes a dtype."""
        return dtype in self.dtypes

    def sample_inputs(
        self, device: Any, dtype: Any, requires_grad: bool = False, **kwargs: Any
    ) -> Iterator[SampleInput]:
        """Arguments that it takes."""
        conjugated = kwargs.pop("include_conjugated_inputs", False)
        samples = self._samples(device, dtype, requires_grad, **kwargs)
        if not conjugated:
            return samples
        more = self.conjugate_sample_inputs(device, dtype, requires_grad, **kwargs)
        return chain(samples, more)

    def conjugate_sample_inputs(
        self, device: Any, dtype: Any, requires_grad: bool = False, **kwargs: Any
    ) -> Iterator[SampleInput]:
        """Arguments whose first tensor is conjugated.

        As in PyTorch, a generator's are left as they are.
        """
        samples = self._made(device, dtype, requires_grad, **kwargs)
        found = list(samples)
        for sample, _ in zip(found, samples, strict=False):
            if isinstance(sample.input, torch.Tensor):
                sample.input = _conjugated(sample.input)
            else:
                sample.input[0] = _conjugated(sample.input[0])
        return iter(found)

    def _samples(
        self, device: Any, dtype: Any, requires_grad: bool, **kwargs: Any
    ) -> Iterator[SampleInput]:
        return iter(self._made(device, dtype, requires_grad, **kwargs))

    def _made(
        self, device: Any, dtype: Any, requires_grad: bool, **kwargs: Any
    ) -> Iterable[SampleInput]:
        make = self.sample_inputs_func
        if make is None:
            raise NotImplementedError(f"{self.full_name} has no samples")
        return make(self, device, dtype, requires_grad, **kwargs)

    # No entry has more samples for comparisons with its reference.
    reference_inputs = sample_inputs
    reference_inputs_func: Callable[..., Iterable[SampleInput]] | None = None

    def error_inputs(self, device: Any, **kwargs: Any) -> Iterator[ErrorInput]:
        """Arguments that it refuses."""
        make = self.error_inputs_func
        return iter(make(self, device) if make else ())

    def get_decorators(self, *place: Any) -> list[Any]:
        """The decorators of a test, by class, name, device, dtype and arguments."""
        return decorators_for(self.decorators, *place)


class UnaryUfuncInfo(OpInfo):
    """What is known of an element-wise operator with one operand."""

    def __init__(
        self,
        name: str,
        *,
        domain: tuple[Any, Any] = (None, None),
        sample_kwargs: Callable[..., Any] = lambda device, dtype, input: ({}, {}),
        handles_complex_extremal_values: bool = True,
        handles_large_floats: bool = True,
        supports_complex_to_float: bool = False,
        reference_numerics_filter: Any = None,
        promotes_int_to_float: bool = False,
        **known: Any,
    ) -> None:
        super().__init__(name, **known)
        self.domain = domain
        self.sample_kwargs = sample_kwargs
        self.handles_complex_extremal_values = handles_complex_extremal_values
        self.handles_large_floats = handles_large_floats
        self.supports_complex_to_float = supports_complex_to_float
        self.reference_numerics_filter = reference_numerics_filter
        self.promotes_int_to_float = promotes_int_to_float


class BinaryUfuncInfo(OpInfo):
    """What is known of an element-wise operator with two operands."""

    def __init__(
        self,
        name: str,
        *,
        lhs_make_tensor_kwargs: dict[str, Any] | None = None,
        rhs_make_tensor_kwargs: dict[str, Any] | None = None,
        promotes_int_to_float: bool = False,
        always_returns_bool: bool = False,
        supports_rhs_python_scalar: bool = True,
        supports_one_python_scalar: bool = False,
        supports_two_python_scalars: bool = False,
        **known: Any,
    ) -> None:
        super().__init__(name, **known)
        self.lhs_make_tensor_kwargs = lhs_make_tensor_kwargs or {}
        self.rhs_make_tensor_kwargs = rhs_make_tensor_kwargs or {}
        self.promotes_int_to_float = promotes_int_to_float
        self.always_returns_bool = always_returns_bool
        self.supports_rhs_python_scalar = supports_rhs_python_scalar
        self.supports_one_python_scalar = supports_one_python_scalar
        self.supports_two_python_scalars = supports_two_python_scalars


class ReductionOpInfo(OpInfo):
    """What is known of a reduction."""

    def __init__(
        self,
        name: str,
        *,
        identity: Any = None,
        nan_policy: str | None = "propagate",
        supports_multiple_dims: bool = True,
        promotes_int_to_float: bool = False,
        promotes_int_to_int64: bool = False,
        result_dtype: Any = None,
        complex_to_real: bool = False,
        generate_args_kwargs: Callable[..., Any] = lambda *args, **kwargs: iter(
            [((), {})]
        ),
        **known: Any,
    ) -> None:
        super().__init__(name, supports_inplace=False, **known)
        self.identity = identity
        self.nan_policy = nan_policy
        self.supports_multiple_dims = supports_multiple_dims
        self.promotes_int_to_float = promotes_int_to_float
        self.promotes_int_to_int64 = promotes_int_to_int64
        self.result_dtype = result_dtype
        self.complex_to_real = complex_to_real
        self.generate_args_kwargs = generate_args_kwargs


class ReductionPythonRefInfo(ReductionOpInfo):
    """A reduction written in Python: there are none."""


class SpectralFuncType(enum.Enum):
    """Over how many dimensions a transform goes."""

    OneD = 1
    TwoD = 2
    ND = 3


class SpectralFuncInfo(OpInfo):
    """What is known of a Fourier transform."""

    def __init__(
        self, name: str, *, ndimensional: SpectralFuncType, **known: Any
    ) -> None:
        super().__init__(name, supports_inplace=False, **known)
        self.ndimensional = ndimensional
