"""`torch.library`: operators that a program registers."""
# ruff: noqa: UP006, UP007, UP035, UP045, B008, RUF013

# (Annotations are read when functions are made: no `from __future__` here.)
import copy
import functools
import gc
from collections.abc import Sequence
from typing import List, Optional, Tuple, Union

import numpy as np
import pytest

import torchshim
from tests.oracle import attempt, case

NUMBERS = [0.0, 1.0, 2.0]


def sine(torch, name="t_library::sine"):
    @torch.library.custom_op(name, mutates_args=())
    def sine(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.sin(x.detach().numpy()))

    return sine


def text(error):
    """What does not depend on where PyTorch was built."""
    if not isinstance(error, Exception):
        return error
    return type(error).__name__, str(error).split(" Duplicate")[0].split("  Previous")[
        0
    ]


@case
def a_function_as_an_operator(torch):
    op = sine(torch)
    x = torch.tensor(NUMBERS)
    yield repr(op), str(op._opoverload), str(op._opoverload._schema), op._qualname
    yield repr(torch.ops.t_library.sine), repr(torch.ops.t_library.sine.default)
    yield torch.ops.t_library.sine.overloads(), op._opoverload.name()
    yield (
        op(x),
        op(x=x),
        torch.ops.t_library.sine(x),
        torch.ops.t_library.sine.default(x),
    )
    for call in (
        lambda: op(),
        lambda: op(1),
        lambda: op(x, x),
        lambda: op(y=x),
        lambda: op([1.0]),
        lambda: op(x, x=x),
        lambda: torch.ops.t_library.none,
        lambda: torch.ops.t_none.none,
    ):
        yield attempt(call)


@case
def gradients(torch):
    op = sine(torch)
    x = torch.tensor(NUMBERS, requires_grad=True)
    y = op(x)
    yield y, y.grad_fn.name(), attempt(y.sum().backward)
    with torch.no_grad():
        yield op(x)
    seen = []

    def setup_context(ctx, inputs, output):
        (x,) = inputs
        seen.append((len(inputs), x.requires_grad, output.requires_grad))
        seen.append(torch.is_grad_enabled())
        ctx.save_for_backward(x)

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        seen.append(ctx.needs_input_grad)
        return grad * x.cos()

    yield op.register_autograd(backward, setup_context=setup_context)
    y = op(x)
    yield y, y.grad_fn.name(), y.sum().backward(), x.grad, seen
    yield torch.autograd.grad(op(x).sum(), x, create_graph=True)
    yield attempt(torch.func.grad(lambda x: op(x).sum()), x.detach())


@case
def keywords_and_defaults(torch):
    @torch.library.custom_op("t_library::two", mutates_args=())
    def two(
        x: torch.Tensor,
        s: float = 2.0,
        *,
        k: Optional[int] = None,
        n: str = "a",
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        return x * s, x + (k or 0)

    x = torch.tensor(NUMBERS, requires_grad=True)
    yield str(two._opoverload._schema), two(x.detach()), two(x.detach(), s=3, k=4)
    for args, kwargs in [
        (("a",), {}),
        ((3, 4), {}),
        ((), {"k": 1.5}),
        ((), {"n": 3}),
        ((), {"m": 3}),
    ]:
        yield attempt(two, x, *args, **kwargs)
    seen = []

    def setup_context(ctx, inputs, keyword_only_inputs, output):
        seen.append((inputs[1:], keyword_only_inputs, type(output).__name__))
        ctx.s = inputs[1]

    def backward(ctx, a, b):
        seen.append(ctx.needs_input_grad)
        return a * ctx.s + b, None

    two.register_autograd(backward, setup_context=setup_context)
    for s in (2.0, 4.0):
        x.grad = None
        a, b = two(x, s)
        (a + b).sum().backward()
        yield x.grad, a.grad_fn.name()
    x.grad = None
    two(x)[0].sum().backward()
    yield x.grad, seen


@case
def what_arguments_become(torch):
    seen = []

    @torch.library.custom_op("t_library::many", mutates_args=())
    def many(
        x: torch.Tensor,
        i: int = 1,
        f: float = 2.5,
        b: bool = False,
        s: str = "q",
        number: torch.types.Number = 1,
        kind: Optional[torch.dtype] = None,
        device: torch.device = torch.device("cpu"),
        ints: Optional[List[int]] = None,
        other: Optional[torch.Tensor] = None,
    ) -> torch.Tensor:
        seen.append((i, f, b, s, number, kind, device, ints, other))
        return x * 1

    yield str(many._opoverload._schema)
    for a in many._opoverload._schema.arguments:
        yield a.name, str(a.type), a.kwarg_only, a.has_default_value(), a.default_value
    x = torch.tensor(NUMBERS)
    tensor = torch.tensor
    for name, values in {
        "i": [True, tensor(3), np.int64(4), 2.0, None, "a"],
        "f": [3, True, tensor(2.0), np.float32(1.5), "a"],
        "b": [1, tensor(True), None],
        "s": [None, "b"],
        "number": [2.5, True, 1j, tensor(2)],
        "kind": [torch.int8, 6, "float32"],
        "device": ["cpu", torch.device("cuda"), 1.5],
        "ints": [(1, 2), 3, tensor([1, 2]), [1.5], []],
        "other": [x, 3],
    }.items():
        for value in values:
            error = attempt(many, x, **{name: value})
            yield error if isinstance(error, Exception) else (seen.pop(),)


@case
def what_kernels_may_return(torch):
    @torch.library.custom_op("t_library::one", mutates_args=())
    def one(x: torch.Tensor, k: int) -> torch.Tensor:
        return [None, 3, [x * 1], (x * 1,), x, x[1:]][k]

    @torch.library.custom_op("t_library::pair", mutates_args=())
    def pair(x: torch.Tensor, k: int) -> Tuple[torch.Tensor, int]:
        return [(x * 1, 2), [x * 1, 2], x * 2, (x * 1,), (x * 1, 2.5)][k]

    @torch.library.custom_op("t_library::both", mutates_args=())
    def both(x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        y = x * 2
        return y, y

    def told(error):
        if isinstance(error, Exception) and "with implementation" in str(error):
            start, _, end = str(error).partition(" (with implementation in ")
            return start, end.partition("): ")[2]
        return error

    x = torch.tensor(NUMBERS)
    for k in range(6):
        yield told(attempt(one, x, k))
    for k in range(5):
        yield attempt(pair, x, k)
    yield told(attempt(both, x))


@case
def lists_of_tensors(torch):
    @torch.library.custom_op("t_library::weighted", mutates_args=())
    def weighted(ts: List[torch.Tensor], w: Sequence[float]) -> torch.Tensor:
        return sum(t * v for t, v in zip(ts, w, strict=True))

    @torch.library.custom_op("t_library::several", mutates_args=())
    def several(x: torch.Tensor) -> list[torch.Tensor]:
        return [x * 1, x * 2]

    x = torch.tensor(NUMBERS, requires_grad=True)
    yield str(weighted._opoverload._schema), weighted([x, x], [1.0, 2])
    yield attempt(weighted([x, x.detach()], [1.0, 2.0]).sum().backward)

    def setup_context(ctx, inputs, output):
        ctx.w = inputs[1]

    def backward(ctx, grad):
        assert len(ctx.needs_input_grad[0]) == 2
        return [grad * v for v in ctx.w], None

    weighted.register_autograd(backward, setup_context=setup_context)
    weighted([x, x], [1.0, 2.0]).sum().backward()
    yield x.grad
    weighted.register_autograd(lambda ctx, g: (g, None), setup_context=setup_context)
    yield attempt(weighted([x, x], [1.0, 2.0]).sum().backward)
    several.register_autograd(lambda ctx, grads: grads[0] + 2 * grads[1])
    x.grad = None
    a, b = several(x)
    (a + b).sum().backward()
    yield a, b, x.grad


@case
def writes_to_arguments(torch):
    @torch.library.custom_op("t_library::inc", mutates_args={"x"})
    def inc(x: torch.Tensor) -> None:
        x.add_(1)

    @torch.library.custom_op(
        "t_library::twice_", mutates_args={"x"}, tags=torch.Tag.inplace
    )
    def twice_(x: torch.Tensor) -> torch.Tensor:
        return x.mul_(2)

    @torch.library.custom_op(
        "t_library::copy", mutates_args={"out"}, tags=torch.Tag.out
    )
    def copy(x: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
        return out.copy_(x)

    for op in (inc, twice_, copy):
        yield (
            str(op._opoverload._schema),
            attempt(op.register_autograd, lambda *_: None),
        )
    x = torch.zeros(2)
    yield inc(x), x, x._version, twice_(x) is x, x, x._version
    leaf = torch.zeros(2, requires_grad=True)
    result = leaf * 1
    yield attempt(inc, leaf), leaf, attempt(inc, result), result
    yield copy(x, out=torch.ones(2)), attempt(copy, leaf, out=torch.ones(2))


@case
def over_examples(torch):
    op = sine(torch)
    x = torch.tensor([NUMBERS, NUMBERS])
    yield torch.vmap(op)(x), torch.vmap(op, in_dims=1)(x)
    seen = []

    @op.register_vmap
    def rule(info, in_dims, x):
        seen.append((info.batch_size, info.randomness, len(in_dims)))
        return op(x), in_dims[0]

    yield torch.vmap(op)(x), seen

    @torch.library.custom_op("t_library::ends", mutates_args=())
    def ends(x: torch.Tensor, k: int) -> Tuple[torch.Tensor, torch.Tensor]:
        return x[:k] * 1, x[-k:] * 1

    yield torch.vmap(lambda x: ends(x, 2))(x)


@case
def kernels_of_devices(torch):
    @torch.library.custom_op("t_library::where", mutates_args=())
    def where(x: torch.Tensor) -> torch.Tensor:
        return torch.zeros(1)

    x = torch.tensor(NUMBERS)
    yield where(x)

    @where.register_kernel("cpu")
    def _(x):
        return torch.ones(1)

    yield where(x)
    with where.set_kernel_enabled("cpu", enabled=False):
        yield where(x)
    yield where(x), attempt(where, x.to("meta"))
    where.register_fake(lambda x: x.new_empty(1))
    yield where(x.to("meta")).device.type

    @torch.library.custom_op("t_library::make", mutates_args={}, device_types="cpu")
    def make(device: torch.device) -> torch.Tensor:
        return torch.ones(3, device=device)

    yield make("cpu"), make(torch.device("cpu")), attempt(make, 3)

    @torch.library.custom_op("t_library::far", mutates_args=(), device_types="cuda")
    def far(x: torch.Tensor) -> torch.Tensor:
        return x * 1

    error = attempt(far, x)
    yield type(error).__name__, str(error).partition(": [")[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        yield sine(torch, "t_library::cast")(x).dtype
    torch.library.register_autocast("t_library::where", "cpu", torch.bfloat16)
    kinds = []
    where.register_kernel("cpu", lambda x: kinds.append(x.dtype) or torch.ones(1))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        where(x), where(x.double())
    yield kinds


@case
def schemas_of_functions(torch):
    infer = torch.library.infer_schema

    def full(
        x: torch.Tensor,
        y: Optional[torch.Tensor],
        a: int,
        b: float = 1.0,
        c: bool = True,
        d: str = "q",
        e: Optional[List[int]] = None,
        f: list[torch.Tensor] = None,
        g: torch.dtype = torch.float32,
        h: torch.device = torch.device("cpu"),
        i: Sequence[float] = None,
        *,
        k: torch.types.Number = 1,
    ) -> Tuple[torch.Tensor, int, List[torch.Tensor]]: ...

    yield infer(full, mutates_args=())
    yield infer(full, mutates_args={"x", "y"}, op_name="name")
    yield infer(full, mutates_args="unknown")

    def bare(x): ...
    def no_result(x: torch.Tensor): ...
    def variadic(x: torch.Tensor, *a: int) -> torch.Tensor: ...
    def result(x: torch.Tensor) -> str: ...
    def default(x: torch.Tensor, y: int = []) -> torch.Tensor: ...
    def plain(x: torch.Tensor, n: int) -> None: ...

    for function in (bare, no_result, variadic, default, plain):
        yield attempt(infer, function, mutates_args=())
    yield str(attempt(infer, result, mutates_args=())).partition("The valid")[0]

    def pair(x: Tuple[int, int]) -> torch.Tensor: ...
    def array(x: np.ndarray) -> torch.Tensor: ...
    def either(x: Union[int, str]) -> torch.Tensor: ...

    for function in (pair, array, either):
        yield str(attempt(infer, function, mutates_args=())).partition("The valid")[0]
    for mutated in ({"n"}, {"z"}, "all"):
        yield attempt(infer, plain, mutates_args=mutated)


@case
def libraries(torch):
    x, leaf = torch.tensor(NUMBERS), torch.tensor(NUMBERS, requires_grad=True)
    with torch.library._scoped_library("t_scoped", "DEF") as lib:
        yield repr(lib), lib.define("g(Tensor x, int n=2) -> Tensor")
        yield text(attempt(lib.define, "g(Tensor x, int n=2) -> Tensor"))
        lib.impl("g", lambda x, n=2: x * n, "CPU")
        g = torch.ops.t_scoped.g
        yield g(x), g(x, 3), g(leaf), str(g.default._schema)
        lib.define("h(Tensor x, Tensor y) -> Tensor")
        lib.impl("h", lambda x, y: x + y, "CompositeImplicitAutograd")
        yield torch.ops.t_scoped.h(leaf, x)
        for kind, space in (("DEF", "t_scoped"), ("DEF", "prim"), ("XX", "t_other")):
            yield text(attempt(torch.library.Library, space, kind))
        lib.define("o.one(Tensor x) -> Tensor")
        lib.define("o.two(Tensor x, Tensor y) -> Tensor")
        lib.impl("o.one", lambda x: x * 1, "CPU")
        lib.impl("o.two", lambda x, y: x * y, "CPU")
        o = torch.ops.t_scoped.o
        yield (
            o(x),
            o(x, x),
            o.overloads(),
            o.two(x, x),
            attempt(o),
            attempt(getattr, o, "z"),
        )
        torch.library.register_autograd(
            "t_scoped::g",
            lambda ctx, grad: (grad * ctx.n, None),
            setup_context=lambda ctx, inputs, output: setattr(ctx, "n", inputs[1]),
            lib=lib,
        )
        for n in (5, 2):
            leaf.grad = None
            g(leaf, n).sum().backward()
            yield leaf.grad, g(leaf, n).grad_fn.name()
        torch.library.register_fake(
            "t_scoped::g", lambda x, n=2: x.new_empty(3), lib=lib
        )
        yield g(x.to("meta")).device.type
    yield attempt(lambda: torch.ops.t_scoped.g)


@case
def a_gradient_by_hand(torch):
    with torch.library._scoped_library("t_hand", "DEF") as lib:
        lib.define("f(Tensor x, float by) -> Tensor")

        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, by):
                ctx.by = by
                with torch._C._AutoDispatchBelowAutograd():
                    return torch.ops.t_hand.f(x, by)

            @staticmethod
            def backward(ctx, grad):
                return grad * ctx.by, None

        lib.impl("f", lambda x, by: x * by, "CPU")
        lib.impl("f", Scale.apply, "Autograd")
        x = torch.tensor(NUMBERS, requires_grad=True)
        y = torch.ops.t_hand.f(x, 3)
        yield (
            y,
            y.grad_fn.name(),
            y.sum().backward(),
            x.grad,
            torch.ops.t_hand.f(y.detach(), 2),
        )


@case
def names_and_schemas_that_are_none(torch):
    define = torch.library.define
    yield attempt(define, "f1", "(Tensor x) -> Tensor")
    yield attempt(define, "t_library::f9", "Tensor x -> Tensor")
    with torch.library._scoped_library("t_scoped2", "FRAGMENT") as lib:
        define("t_scoped2::f", "(Tensor x) -> Tensor", lib=lib)

        @torch.library.impl("t_scoped2::f", "default", lib=lib)
        def f(x):
            return x * 2

        yield torch.ops.t_scoped2.f(torch.tensor(NUMBERS))


@case
def checks_of_operators(torch):
    @torch.library.custom_op("t_library::good", mutates_args=())
    def good(x: torch.Tensor, n: int) -> torch.Tensor:
        return x * n

    check = torch.library.opcheck
    x = torch.tensor(NUMBERS)
    yield text(attempt(check, good, (x, 2)))
    good.register_fake(lambda x, n: x.new_empty(1))
    yield text(attempt(check, good, (x, 2)))
    found = check(good, (x, 2), raise_exception=False)
    yield {k: v if v == "SUCCESS" else str(v) for k, v in found.items()}
    good.register_fake(lambda x, n: torch.empty_like(x))
    good.register_autograd(
        lambda ctx, grad: (grad * ctx.n, None),
        setup_context=lambda ctx, inputs, output: setattr(ctx, "n", inputs[1]),
    )
    yield check(good, (x, 2)), check(good, (x.requires_grad_(), 2))
    yield check(good, (x, 2), test_utils="test_schema")


def test_a_kernel_without_gradient_warns_where_one_flows():
    torch = torchshim
    with torch.library._scoped_library("t_warns", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x * 2, "CPU")
        x = torch.ones(2, requires_grad=True)
        y = torch.ops.t_warns.f(x).sum()
        with pytest.warns(UserWarning, match="autograd kernel was not registered"):
            y.backward()
        assert x.grad.tolist() == [2.0, 2.0]


def test_a_library_that_nobody_holds_takes_its_operators_along():
    lib = torchshim.library.Library("t_gone", "DEF")
    lib.define("f(Tensor x) -> Tensor")
    assert torchshim.ops.t_gone.f.overloads() == ["default"]
    del lib
    gc.collect()
    with pytest.raises(AttributeError):
        torchshim.ops.t_gone.f  # noqa: B018
    torchshim.library.Library("t_gone", "DEF")


def test_opcheck_compares_two_runs():
    calls = []

    @torchshim.library.custom_op("t_library::drifts", mutates_args=())
    def drifts(x: torchshim.Tensor) -> torchshim.Tensor:
        calls.append(x)
        return x + 0.01 * len(calls)

    drifts.register_fake(torchshim.empty_like)
    x, check = torchshim.ones(2), torchshim.library.opcheck
    with pytest.raises(Exception, match="two runs"):
        check(drifts, (x,))
    assert check(drifts, (x,), atol=0.1)["test_aot_dispatch_dynamic"] == "SUCCESS"


@case(warnings=False)  # PyTorch warns of the first function put in another's place
def wrong_registrations(torch):
    library = torch.library
    with library._scoped_library("t_wrong", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")
        for factor in (1, 2):
            lib.impl("f", lambda x, factor=factor: x * factor, "CPU")
            yield torch.ops.t_wrong.f(torch.ones(2))
        yield text(attempt(torch.ops.t_wrong.f, torch.ones(2, device="meta")))
        again = functools.partial(lib.impl, "f", torch.sin, allow_override=False)
        yield attempt(again, "CPU")
        yield attempt(library.impl, "t_wrong::f", "nowhere", torch.sin)
        yield attempt(library.register_kernel, "t_wrong::f", "nowhere", torch.sin)
        yield attempt(library.register_fake, "t_wrong::g", torch.sin)


@case
def wrong_checks(torch):
    @torch.library.custom_op("t_wrong_checks::f", mutates_args=())
    def f(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x.clone()

    check = torch.library.opcheck
    for tests in ("test_schema", "all", ("test_schema", "some")):
        yield text(attempt(check, f, (torch.ones(2),), test_utils=tests))


@case
def names_of_the_dispatcher(torch):
    add = torch.ops.aten.add
    yield copy.deepcopy(add) is add, copy.deepcopy(add.Tensor) is add.Tensor
    yield add.__module__, add.Tensor.__module__


@case
def operators_are_overridden(torch):
    lib = torch.library.Library("mylib", "FRAGMENT")
    lib.define("over(Tensor x, int n=1) -> Tensor")
    lib.impl("over", lambda x, n=1: x + n, "CompositeExplicitAutograd")
    packet = torch.ops.mylib.over

    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            print("own", func, len(args), kwargs)
            return super().__torch_function__(func, types, args, kwargs or {})

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            print("mode", func, len(types), kwargs)
            return func(*args, **(kwargs or {}))

    class Other:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return 5, str(func)

    x = torch.ones(2)
    own = x.as_subclass(Own)
    yield type(packet(own, n=2)).__name__, type(packet.default(own)).__name__
    yield packet(Other()), packet.default(x, Other())
    with Mode():
        packet(x, 2)
        packet.default(own)
    yield torch.fx.symbolic_trace(lambda x: packet(packet.default(x, 2))).code

    @torch.library.custom_op("mylib::own_op", mutates_args=())
    def own_op(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    yield own_op(Other())
    yield torch.fx.symbolic_trace(lambda x: own_op(x)).code
    yield text(attempt(packet, "a"))
