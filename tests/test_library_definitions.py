"""`torch.library`: namespaces, dispatch keys and kernels that come first."""

import logging
import re
import warnings

from tests.oracle import attempt, case


def _told(function, *arguments):
    """The error without the places in files that it names."""
    found = attempt(function, *arguments)
    return re.sub(r" Duplicate registration.*|  \(Error occurred.*", "", str(found))


@case
def definitions(torch):
    lib = torch.library.Library("defined_lib", "DEF")
    yield (
        lib.define("f(Tensor x) -> Tensor"),
        _told(lib.define, "f(Tensor x) -> Tensor"),
    )
    yield _told(lib.define, "other::g(Tensor x) -> ()")
    lib._destroy()


@case
def kernels(torch):
    lib = torch.library.Library("kernel_lib", "DEF")
    lib.define("f(Tensor x) -> Tensor")
    yield (
        _told(lib.impl, "f", lambda x: x, "FOO"),
        _told(lib.impl, "f", lambda x: x, ""),
    )
    yield _told(lib.impl, "other::f", lambda x: x, "CPU")
    yield _told(lib.impl, 5, lambda x: x, "CPU")
    yield _told(lib.impl, "f", 5, "CPU")
    yield _told(torch.library.Library, "kernel_lib", "FRAGMENT", "FOO")
    keys = "CUDA AutogradCPU CompositeExplicitAutograd SparseCPU BackendSelect"
    yield [attempt(lib.impl, "f", lambda x: x, key) for key in keys.split()]
    lib._destroy()


@case
def kernels_that_come_first(torch):
    lib = torch.library.Library("early_lib", "DEF")
    yield lib.impl("g", lambda x: x * 3, "CPU")
    lib.define("g(Tensor x) -> Tensor")
    yield torch.ops.early_lib.g(torch.ones(2))
    lib._destroy()


@case
def kernels_without_a_gradient(torch):
    lib = torch.library.Library("no_gradient_lib", "DEF")
    kernels = {
        "apart(Tensor x, Tensor y) -> Tensor": lambda x, y: (x + y).detach().clone(),
        "lists(Tensor[] xs) -> Tensor[]": lambda xs: [x.detach() * 2 for x in xs],
        "integers(Tensor x) -> Tensor": lambda x: x.detach().to(torch.int64),
        "tracked(Tensor x) -> (Tensor, Tensor)": lambda x: (x * 2, x.detach() * 3),
        "written(Tensor(a!) x) -> Tensor(a!)": _written(torch),
        "passed(Tensor x) -> Tensor": lambda x: x.detach() * 2,
    }
    for schema, kernel in kernels.items():
        lib.define(schema)
        lib.impl(schema.partition("(")[0], kernel, "CPU")
    lib.impl("passed", torch.library.fallthrough_kernel, "Autograd")
    ops = torch.ops.no_gradient_lib
    x = torch.tensor([1.0, 2.0], requires_grad=True)

    def told(results):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            total = sum((r * x).sum() for r in results)
            grads = torch.autograd.grad(total, x, allow_unused=True)
        texts = [str(w.message).partition(":")[2][2:40] for w in found]
        return [(r.detach(), r.requires_grad) for r in results], grads, texts

    for mode in ("warn", "nothing"):
        torch._C._set_autograd_fallback_mode(mode)
        yield torch._C._get_autograd_fallback_mode()
        try:
            yield told([ops.apart(torch.ones(2), x)])
            yield told([ops.apart(torch.ones(2), x)])
            yield told(ops.lists([x, torch.ones(2)]))
            yield ops.integers(x), told(ops.tracked(x)), told([ops.passed(x)])
            y = x.clone()
            z = ops.written(y[:1])
            yield z, y, told([y])
            with torch.no_grad():
                yield ops.apart(x, x).requires_grad
        finally:
            torch._C._set_autograd_fallback_mode("warn")
    yield attempt(torch._C._set_autograd_fallback_mode, "error")
    x = x.detach()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        slope = torch.func.grad(lambda t: (ops.apart(t, x) * t).sum())
        yield slope(x), torch.vmap(slope)(torch.stack([x, x]))
        yield torch.func.vjp(lambda t: ops.apart(t, x), x)[1](x)
        yield torch.func.jvp(lambda t: ops.apart(t, x) * t, (x,), (x,))


def _written(torch):
    def kernel(x):
        with torch.no_grad():
            return x.sin_()

    return kernel


@case
def what_scripts_delete(torch):
    lib = torch.library.Library("held_lib", "DEF")
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x * 2, "CPU")
    del lib.m
    yield torch.ops.held_lib.f(torch.ones(2)), hasattr(lib, "m")
    other = torch.library.Library("other_lib", "DEF")
    other._destroy()
    yield other.m


@case
def types_that_schemas_do_not_have(torch):
    lib = torch.library.Library("types_lib", "FRAGMENT")
    for schema in (
        "f(Tensor a) -> asdf",
        "f(Tensor a, asdf[] b, Tensor c) -> ()",
        "f(int64_t a) -> Tensor",
        "f(double? a) -> Tensor",
        "types_lib::f(Dimname x) -> ()",
        "f(std::string x) -> ()",
        "f(t x) -> t",
    ):
        yield attempt(lib.define, schema)
    made = torch.library.custom_op(
        "types_lib::g", mutates_args=(), schema="(a b) -> ()"
    )
    yield attempt(made, lambda b: None)
    yield attempt(torch.library.impl, "types_lib::h", "somethingsomething")
    lib.define("k(ScalarType x=float64, int y=3, Device z='cpu') -> ()")
    schema = torch.ops.types_lib.k.default._schema
    yield str(schema), [a.default_value for a in schema.arguments]


@case
def tensors_by_name_only(torch):
    lib = torch.library.Library("named_lib", "FRAGMENT")
    lib.define("f(Tensor x, *, Tensor[]? y) -> Tensor")
    lib.define("g(Tensor x, *, float y) -> Tensor")
    for name in ("named_lib::f", "named_lib::g"):
        yield attempt(torch.library.register_autograd, name, lambda ctx, g: g)
        yield attempt(torch.library.register_vmap, name, lambda *args: args[2])


@case
def custom_operators_that_write_to_lists(torch):
    @torch.library.custom_op("writes_lib::f", mutates_args={"y", "z", "w"})
    def f(
        x: torch.Tensor,
        y: torch.Tensor | None,
        z: list[torch.Tensor],
        w: list[torch.Tensor | None],
    ) -> None:
        return

    x, y, *zs = (torch.ones(2) for _ in range(5))
    f(x, y, zs[:2], [zs[2], None])
    yield [t._version for t in (x, y, *zs)]
    f(x, None, [], [None])
    yield [t._version for t in (x, y, *zs)]


@case
def kernels_switched_off(torch):
    @torch.library.custom_op("switched_lib::f", mutates_args=())
    def f(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    f.register_kernel("cpu")(lambda x: x + 2)
    told = []
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage().replace("  ", " "))
    logger = logging.getLogger("torch._library.custom_ops")
    logger.addHandler(handler)
    try:
        for device in ("gpu", "cpu"):
            for enabled in (True, False):
                with f.set_kernel_enabled(device, enabled=enabled):
                    with f.set_kernel_enabled(device, enabled=enabled):
                        yield f(torch.zeros(1))
    finally:
        logger.removeHandler(handler)
    yield told
