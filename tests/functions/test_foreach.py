"""`torch._foreach_*`, compared with PyTorch."""

from __future__ import annotations

from tests.oracle import attempt, case

UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 "
    "log1p log2 neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
).split()
BINARY = "add sub mul div pow maximum minimum clamp_min clamp_max".split()


def lists(torch):
    first = [torch.tensor([0.25, 0.5]), torch.tensor([[0.75]], dtype=torch.float64)]
    second = [torch.tensor([2.0, 0.125]), torch.tensor(3.0, dtype=torch.float64)]
    return first, second


def both(torch, name, *args, **kwargs):
    """What a function gives, and what its in-place form does."""
    plain = getattr(torch, f"_foreach_{name}")(lists(torch)[0], *args, **kwargs)
    tensors = lists(torch)[0]
    changed = attempt(getattr(torch, f"_foreach_{name}_"), tensors, *args, **kwargs)
    return plain, type(plain).__name__, tensors, changed is tensors, changed


@case
def unary(torch):
    for name in UNARY:
        yield name, both(torch, name)
    yield torch._foreach_neg((torch.ones(2, dtype=torch.int64), torch.ones(0)))


@case
def binary(torch):
    _, second = lists(torch)
    for name in BINARY:
        for other in (2, 0.5, [1, 0.25], second, tuple(second)):
            yield name, both(torch, name, other)
    for name in ("add", "sub", "mul", "div"):
        yield name, both(torch, name, torch.tensor(2.0))
    for name in ("add", "sub"):
        yield name, both(torch, name, second, alpha=2)
    yield both(torch, "add", torch.tensor(2.0), alpha=0.5)
    yield torch._foreach_pow(2.0, second), torch._foreach_pow(second, exponent=2)
    yield torch._foreach_add(second, scalar=2), torch._foreach_mul(second, other=second)
    yield torch._foreach_add(second, scalars=[1, 2])


@case
def ternary(torch):
    first, second = lists(torch)
    for weight in (0.5, [0.1, 0.2], first):
        yield both(torch, "lerp", second, weight)
    for name in ("addcmul", "addcdiv"):
        yield both(torch, name, second, second)
        yield both(torch, name, second, second, 2)
        yield both(torch, name, second, second, value=0.5)
        yield both(torch, name, second, second, [1.0, 2.0])
        yield both(torch, name, second, second, torch.tensor([1.0, 2.0]))


@case
def others(torch):
    first, second = lists(torch)
    for order in (2, 1, 0.5, float("inf")):
        yield torch._foreach_norm(first, order)
    yield torch._foreach_norm(first, ord=1, dtype=torch.float64)
    yield torch._foreach_max(first), torch._foreach_powsum(second, 2)
    yield torch._foreach_mm([torch.ones(2, 2)], [torch.ones(2, 3)])
    copies = torch._foreach_clone(first)
    yield torch._foreach_zero_(first), copies
    yield torch._foreach_copy_(first, second)


@case
def gradients(torch):
    x = [
        torch.tensor([1.0, 2.0], requires_grad=True),
        torch.ones(1, requires_grad=True),
    ]
    y = torch._foreach_mul(torch._foreach_exp(x), x)
    yield torch.autograd.grad(sum(t.sum() for t in y), x)
    yield attempt(torch._foreach_add_, x, 1)
    with torch.no_grad():
        yield [t.detach() for t in torch._foreach_add_(x, 1)], x[0]._version


@case
def errors(torch):
    first, second = lists(torch)
    add = torch._foreach_add
    yield attempt(add, [], 1)
    yield attempt(add, first, second[:1])
    yield attempt(add, first, [1])
    yield attempt(add, first, torch.ones(2))
    yield attempt(add, [torch.ones(2)], [torch.ones(3)])
    yield attempt(torch._foreach_add_, [torch.ones(2)], [torch.ones(2, 2)])
    yield attempt(torch._foreach_add_, [torch.ones(2, dtype=torch.int64)], 1.5)
    yield attempt(torch._foreach_sqrt_, [torch.ones(2, dtype=torch.int64)])
    for scalars in (torch.ones(3), torch.tensor(1.0), [1.0]):
        yield attempt(torch._foreach_addcmul, first, first, first, scalars)
    yield attempt(torch._foreach_addcdiv, first, first, first[:1])
    yield attempt(torch._foreach_neg, [torch.tensor([True])])
    yield attempt(torch._foreach_norm, [])


@case(message=False)
def wrong_types(torch):
    first, _ = lists(torch)
    yield attempt(torch._foreach_add, 1, 1.5)
    yield attempt(torch._foreach_add, first, "x")
    yield attempt(torch._foreach_add, first, 2, alpha=2)
    yield attempt(torch._foreach_add, first, more=2)
    yield attempt(torch._foreach_exp, first, 1)


@case
def nothing_to_combine(torch):
    one, none = [torch.ones(1)], [torch.ones(0)]
    yield (
        attempt(torch._foreach_addcmul, one, [], []),
        attempt(torch._foreach_max, none),
    )
    yield attempt(torch._foreach_lerp, one, [], one), attempt(torch._foreach_max, [])
    yield attempt(torch._foreach_copy_, one, []), attempt(torch._foreach_norm, none)
    yield attempt(torch._foreach_norm, none, float("inf"))
    yield attempt(torch._foreach_add_, [], one), attempt(torch._foreach_add, [], [1])
    yield attempt(torch._foreach_pow, [], one), attempt(torch._foreach_copy_, [], one)
    yield attempt(torch._foreach_lerp, [], one, one)
    yield attempt(torch._foreach_lerp, [], one, 0.5)
    yield attempt(torch._foreach_mm, one, []), attempt(torch._foreach_mm, one, one * 2)


@case
def arguments_of_other_kinds(torch):
    one, whole = [torch.ones(1)], [torch.ones(1, dtype=torch.int64)]
    yield attempt(torch._foreach_copy_, one, one, 2)
    yield attempt(torch._foreach_copy_, one, one, [True])
    yield attempt(torch._foreach_norm, one, True)
    yield attempt(torch._foreach_powsum, whole), torch._foreach_powsum(one, 3)
    yield attempt(torch._foreach_maximum_, whole, one)
    yield attempt(torch._foreach_minimum_, whole, one)


@case
def packed_numbers(torch):
    halves = [torch.tensor([3.5, 0.3], dtype=torch.bfloat16) for _ in range(2)]
    for name in ("addcmul", "addcdiv"):
        for kind in (torch.float32, torch.int64, torch.bool, torch.complex64):
            numbers = torch.tensor([1, 2]).to(kind)
            for given in (halves, lists(torch)[1]):
                call = getattr(torch, f"_foreach_{name}")
                yield attempt(call, given, given, given, numbers)
                yield attempt(call, given, given, given, scalars=numbers)
                given = [each.clone() for each in given]
                yield attempt(
                    getattr(torch, f"_foreach_{name}_"), *[given] * 3, numbers
                )


@case
def packed_numbers_that_are_refused(torch):
    _, x = lists(torch)
    strided = torch.tensor([[0, 1], [2, 3]])[:, 1]
    for numbers in (
        *(torch.tensor(2.0), torch.tensor([2.0]), torch.ones(2, 1), strided),
        *(torch.ones(2, device="meta"), torch.ones(5, 2)[:, 1]),
    ):
        yield attempt(torch._foreach_addcmul, x, x, x, numbers)
        yield attempt(torch._foreach_addcdiv_, x, x, x, scalars=numbers)
    for lists_ in ([[], x, x], [x, x[:1], x], [x, x, []], [[], [], []]):
        yield attempt(torch._foreach_addcmul, *lists_)
    yield attempt(torch._foreach_addcmul, x, x, x, [1, 2], value=1)


@case
def bounds_of_complex_numbers(torch):
    x, y = [torch.ones(3) + 0j], [torch.ones(2) + 0j]
    for name in ("clamp_min", "clamp_max", "maximum", "minimum"):
        for form in ("", "_"):
            for other in (x, y, 1, [1]):
                yield attempt(getattr(torch, f"_foreach_{name}{form}"), x, other)


@case
def by_device_and_dtype(torch):
    import importlib

    name = f"{torch.__name__}.utils._foreach_utils"
    utils = importlib.import_module(name)

    x = [torch.ones(1), torch.zeros(1).double(), torch.full((2,), 3.0)]
    for indices in (False, True):
        found = utils._group_tensors_by_device_and_dtype([x, [None] * 3, x], indices)
        yield sorted(map(str, found.items()))
        grouped = torch.optim.Optimizer._group_tensors_by_device_and_dtype
        yield sorted(map(str, grouped([x, [None] * 3, x], indices).items()))
    yield utils._has_foreach_support(x, torch.device("cpu"))
    yield utils._device_has_foreach_support(torch.device("meta"))


@case
def tensors_taken_for_numbers(torch):
    scalars = [torch.tensor(v) for v in (3, 2.0, True)]
    scalars += [torch.tensor(2.0, dtype=torch.float64), torch.tensor([2.0])]
    for name in BINARY:
        function = getattr(torch, f"_foreach_{name}")
        for tensors in ([torch.ones(2)], [torch.ones(2, dtype=torch.int64)]):
            for scalar in scalars:
                yield name, attempt(function, tensors, scalar)
            if name not in ("add", "mul", "div"):
                yield attempt(function, tensors, torch.tensor(2.0, requires_grad=True))
    for name in ("add", "sub"):
        function = getattr(torch, f"_foreach_{name}")
        for other in (scalars[3], 2, [2], [torch.ones(2)]):
            ints = [torch.ones(2, dtype=torch.int64)]
            yield name, attempt(function, ints, other, alpha=2)
    lerp, ends = torch._foreach_lerp, [torch.ones(2)]
    for weight in scalars:
        yield attempt(lerp, ends, [torch.zeros(2)], weight)


@case
def names_of_operands(torch):
    tensors = [torch.ones(2)]
    scalar = torch.tensor(2.0)
    for name in ("add", "mul", "clamp_min", "pow"):
        function = getattr(torch, f"_foreach_{name}")
        for value in (2, [2], tensors, scalar):
            yield name, attempt(lambda f=function, v=value: f(tensors, other=v))
            yield name, attempt(lambda f=function, v=value: f(tensors, scalar=v))
            yield name, attempt(lambda f=function, v=value: f(tensors, scalars=v))
            yield name, attempt(lambda f=function, v=value: f(tensors, exponent=v))
    lerp = torch._foreach_lerp
    for value in (0.5, tensors):
        yield attempt(lambda v=value: lerp(tensors, tensors, weights=v))
    yield attempt(lambda: lerp(tensors, tensors, weight=0.5))
    yield attempt(lambda: lerp(tensors, tensors, 0.5, weights=tensors))
    yield attempt(lambda: lerp(tensors, tensors))


@case
def lists_of_tensors_and_others(torch):
    two = [torch.ones(2), torch.ones(2)]
    for other in ([two[0], 2], [2, two[0]], [two[0], None]):
        yield attempt(torch._foreach_add, two, other)
        yield attempt(torch._foreach_mul_, two, other)
    yield attempt(torch._foreach_norm, two, 1j)
