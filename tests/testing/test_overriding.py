"""Functions and methods ask who overrides them: what `test_overrides.py` looks at."""

from __future__ import annotations

import inspect

import pytest

import torchshim as torch
from torchshim.overrides import (
    get_testing_overrides,
    is_tensor_method_or_property,
    resolve_name,
)
from torchshim.testing._internal.generated.annotated_fn_args import annotated_args

STUBS = get_testing_overrides()


class TensorLike:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return STUBS[func](*args, **(kwargs or {}))


class SubTensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return STUBS[func](*args, **(kwargs or {}))


# Methods that only ask where they are called as methods, see docs/differences.md.
UNBOUND = frozenset(
    """
    __array__ __array_wrap__ __contains__ __copy__ __len__ __reduce_ex__ __reversed__
    _is_view data_ptr dim element_size float_power_ is_complex is_contiguous
    is_floating_point is_set_to is_signed lu numel positive size split storage_offset
    where
    """.split()
)

GIVEN = {
    **dict.fromkeys(("int64_t", "SymInt", "DeviceIndex"), 0),
    **{"Scalar": 3.5, "bool": False, "double": 1.0, "ScalarType": torch.float32},
    **{"c10::string_view": "", "std::string_view": "", "Stream": None},
}


def value(argument, make):
    kind = argument["simple_type"].removesuffix("?")
    if kind == "Tensor":
        return make()
    if "List" in kind:
        return [make(), make()] if "Tensor" in kind else [3.5]
    if "ArrayRef" in kind:
        size = argument.get("size", 2)
        return 1 if size == 1 else [1] * size
    return GIVEN[kind]


def call(function):
    make = TensorLike
    if is_tensor_method_or_property(function):
        make = lambda: torch.ones(1).as_subclass(SubTensor)  # noqa: E731
    if function.__name__ == "__get__":  # an attribute is read
        name = str(resolve_name(function))
        return getattr(make(), name.split(".")[2])
    args, kwargs = [], {}
    if function in annotated_args:
        for argument in annotated_args[function]:
            given = value(argument, make)
            if argument["is_kwarg_only"] == "True":
                kwargs[argument["name"]] = given
            else:
                args.append(given)
    else:
        spec = inspect.getfullargspec(STUBS[function])
        needed = len(spec.args) - len(spec.defaults or ())
        args = [make() for _ in range(needed + 2 * (spec.varargs is not None))]
    return function(*args, **kwargs)


FUNCTIONS = [f for f in STUBS if f.__name__ not in UNBOUND]


def test_most_are_tried():
    assert len(FUNCTIONS) > 1200
    assert len(annotated_args) > 1200
    assert {f.__name__ for f in STUBS} >= UNBOUND


@pytest.mark.parametrize("start", range(0, 1300, 100))
def test_handlers_are_asked(start):
    for function in FUNCTIONS[start : start + 100]:
        assert call(function) == -1, function


def test_unbound_methods_do_not_ask():
    x = torch.ones(2).as_subclass(SubTensor)
    assert x.dim() == x.numel() == x.size() == -1
    assert (torch.Tensor.dim(x), torch.Tensor.numel(x)) == (1, 2)
