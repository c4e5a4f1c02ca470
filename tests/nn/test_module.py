"""`nn.Module` and `nn.parameter`, compared with PyTorch."""

from __future__ import annotations

import copy
import functools
import pickle
import typing
from typing import Any

from tests.nn.small_modules import names, scale_class, show_grads, tree
from tests.oracle import attempt, case

# Registration


@case
def hints_of_types(torch):
    class Net(torch.nn.Linear):
        scale: float = 1.0

    hints = typing.get_type_hints(Net)
    yield hints["scale"], hints["in_features"], hints["training"]
    yield hints["_parameters"] == dict[str, torch.nn.Parameter | None]
    found = typing.get_type_hints(torch.nn.Module.children)["return"]
    yield typing.get_args(found)[0] is torch.nn.Module


@case
def functions_in_classes(torch):
    """Functions that are built in there are no methods of a class, others are."""
    functional = torch.nn.functional
    functions = (
        *(torch.tanh, torch.conv2d, torch.max, torch.cat, torch.zeros, torch.var),
        *(torch.norm, torch.einsum, torch.linalg.norm, torch.fft.fft, torch.special.i0),
        *(functional.gelu, functional.linear, functional.relu, functional.layer_norm),
        functional.softmax,
    )
    for function in functions:

        class Holding(torch.nn.Module):
            held = function

        yield Holding.held is function, Holding().held is function

    class Wrapping(torch.nn.Module):
        @functools.wraps(torch.tanh)
        def tanh(self, x):
            return torch.tanh(x), type(self).__name__

        activation = torch.relu

    class Inheriting(Wrapping):
        pass

    x = torch.tensor([-1.0, 1.0])
    yield Inheriting().tanh(x), Inheriting().activation(x), Wrapping.activation(input=x)


@case
def attributes(torch):
    m = scale_class(torch)()
    yield names(m.named_parameters()), names(m.named_buffers())
    yield sorted(m.__dict__), type(m._parameters), type(m._buffers), type(m._modules)
    yield type(m._forward_hooks), m._is_full_backward_hook, m.training
    yield sorted(m._non_persistent_buffers_set), m.factor, m.calls
    yield m.factor is m._parameters["factor"]
    yield attempt(lambda: m.missing)
    yield hasattr(m, "missing")
    yield [n for n in dir(m) if n in ("factor", "calls", "scratch", "forward")]
    del m.factor, m.scratch
    yield names(m.named_parameters()), names(m.named_buffers())
    yield sorted(m._non_persistent_buffers_set)
    yield attempt(delattr, m, "missing")


@case
def assignments_that_change_a_kind(torch):
    nn = torch.nn
    m = nn.Module()
    m.x = 5
    m.x = nn.Parameter(torch.ones(1))
    yield "x" in m.__dict__, list(m._parameters)
    m.x = None
    yield m._parameters, m.x
    m.x = nn.Parameter(torch.ones(1))
    yield type(attempt(setattr, m, "x", nn.Module()))
    del m.x
    m.x = torch.ones(1)
    m.x = nn.Module()
    yield "x" in m.__dict__, list(m._parameters), list(m._modules)
    m.x = None
    yield m._modules
    m.x = nn.Parameter(torch.ones(1))
    yield list(m._parameters), list(m._modules)
    m.register_buffer("b", torch.zeros(1), persistent=False)
    m.b = torch.ones(2)
    yield m._buffers, sorted(m._non_persistent_buffers_set)
    m.b = None
    yield m._buffers
    m.b = nn.Buffer(torch.ones(3))
    yield m._buffers, sorted(m._non_persistent_buffers_set)
    m.b = nn.Parameter(torch.ones(3))
    yield list(m._buffers), list(m._parameters)
    m.plain = torch.ones(1)
    yield "plain" in m.__dict__
    m.new = nn.Buffer(torch.ones(1), persistent=False)
    yield list(m._buffers), sorted(m._non_persistent_buffers_set)


@case.lines("""
    m.x = torch.ones(1)
    m.x = 3
    m.sub = 3
    m.sub = torch.ones(1)
    m.buf = 3
    m.buf = "text"
    m.register_buffer(3, None)
    m.register_buffer("a.b", None)
    m.register_buffer("", None)
    m.register_buffer("x", None)
    m.register_buffer("forward", None)
    m.register_buffer("y", [1])
    m.register_parameter(3, None)
    m.register_parameter("a.b", None)
    m.register_parameter("", None)
    m.register_parameter("buf", None)
    m.register_parameter("y", torch.ones(1))
    m.register_parameter("y", 3)
    m.add_module(3, None)
    m.add_module("a.b", nn.Module())
    m.add_module("", nn.Module())
    m.add_module("x", nn.Module())
    m.add_module("y", 3)
    m.add_module("y", nn.Module)
    m.register_module("y", torch.ones(1))
    setattr(m, "a.b", nn.Parameter(torch.ones(1)))
    m(1)
    m(x=1)
    m.forward(1, 2)
    m.train(1)
    m.eval(1)
    m.get_extra_state()
    m.set_extra_state(1)
    m.state_dict(foo=1)
    m.load_state_dict()
    m.load_state_dict(3)
    m.register_forward_hook()
    m.register_forward_hook(print, True)
    m.to_empty()
    nn.Module(1)
    nn.Module(a=1)
    list(m.parameters(3, 4))
""")
def errors(torch, line):
    nn = torch.nn
    m = nn.Module()
    m.x = nn.Parameter(torch.ones(1))
    m.sub = nn.Module()
    m.register_buffer("buf", torch.ones(1))
    scope = {"torch": torch, "nn": nn, "m": m}
    yield attempt(exec, line, scope)
    yield list(m._parameters), list(m._buffers), list(m._modules)


@case
def before_init(torch):
    class Late(torch.nn.Module):
        def __init__(self) -> None:
            pass

    nn = torch.nn
    yield attempt(Late(), 1)
    yield attempt(repr, Late())
    yield attempt(setattr, Late(), "a", nn.Parameter(torch.ones(1)))
    yield attempt(setattr, Late(), "a", nn.Module())
    yield attempt(setattr, Late(), "a", nn.Buffer(torch.ones(1)))
    yield attempt(Late().register_buffer, "a", None)
    yield attempt(Late().register_parameter, "a", None)
    yield attempt(getattr, Late(), "a")
    late = Late()
    late.a = torch.ones(1)
    yield late.a


@case
def non_leaf_parameter(torch):
    m = torch.nn.Module()
    p = torch.nn.Parameter(torch.ones(1))
    q = p * 2
    q.__class__ = torch.nn.Parameter
    yield attempt(m.register_parameter, "p", q)
    yield list(m._parameters)


@case
def super_init(torch):
    class Other:
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.got = (args, kwargs)

    class Both(torch.nn.Module, Other):
        call_super_init = True

    return Both(1, a=2).got


@case
def own_register_buffer(torch):
    class Narrow(torch.nn.Module):
        def register_buffer(self, name: str, tensor: Any) -> None:
            print("narrow", name)
            super().register_buffer(name, tensor)

    m = Narrow()
    m.a = torch.nn.Buffer(torch.ones(1))
    yield list(m._buffers)
    yield attempt(setattr, m, "b", torch.nn.Buffer(torch.ones(1), persistent=False))


@case
def registration_hooks(torch):
    hooks = torch.nn.modules.module

    def seen(module: Any, name: str, value: Any) -> None:
        print(type(module).__name__, name, type(value).__name__)

    handles = [
        hooks.register_module_buffer_registration_hook(seen),
        hooks.register_module_module_registration_hook(seen),
        hooks.register_module_parameter_registration_hook(seen),
        hooks.register_module_parameter_registration_hook(
            lambda module, name, p: torch.nn.Parameter(p.detach() + 1)
        ),
    ]
    m = torch.nn.Module()
    m.sub = scale_class(torch)()
    m.sub = None
    m.add_module("other", torch.nn.Module())
    for handle in handles:
        handle.remove()
    m.quiet = torch.nn.Module()
    return [h for h in (dict(m.named_modules())) if "." in h], m.other


# Walking


@case
def walks(torch):
    m = tree(torch)
    yield names(m.named_modules()), names(m.named_modules(remove_duplicate=False))
    yield names(m.named_modules(prefix="p")), len(list(m.modules()))
    yield len(list(m.modules(remove_duplicate=False)))
    yield names(m.named_children()), len(list(m.children()))
    yield names(m.named_parameters()), names(m.named_parameters("p", False))
    yield names(m.named_parameters(remove_duplicate=False))
    yield names(m.named_buffers()), names(m.named_buffers("p"))
    yield names(m.c.named_parameters(recurse=False)), len(list(m.buffers(False)))
    yield [tuple(p.shape) for p in m.parameters()]


@case
def dotted_names(torch):
    m = tree(torch)
    yield m.get_submodule("") is m, m.get_submodule("c.inner") is m.c.inner
    yield m.get_parameter("c.tied") is m.a.factor
    yield m.get_buffer("c.inner.calls")
    for method, target in (
        ("get_submodule", "c.none"),
        ("get_submodule", "c.tied"),
        ("get_submodule", "nothing"),
        ("get_submodule", "c."),
        ("get_parameter", "c.inner"),
        ("get_parameter", "x.y"),
        ("get_parameter", "a.missing"),
        ("get_buffer", "a.factor"),
        ("get_buffer", "a.missing"),
    ):
        yield attempt(getattr(m, method), target)
    new = torch.nn.Module()
    for target, strict in (
        ("c.inner", False),
        ("c.fresh", True),
        ("c.fresh", False),
        ("c.tied", False),
        ("", False),
        ("no.such", False),
    ):
        yield attempt(m.set_submodule, target, new, strict)
    yield m.c.inner is new, m.c.fresh is new
    yield attempt(m.set_submodule, "c", 3).__class__


@case
def modes(torch):
    m = tree(torch)
    yield m.eval() is m, [x.training for x in m.modules()]
    yield m.c.train() is m.c, [x.training for x in m.modules()]
    yield m.requires_grad_(False) is m, [p.requires_grad for p in m.parameters()]


@case
def zero_grad(torch):
    m = scale_class(torch)()
    m(torch.ones(2)).sum().backward()
    grad = m.factor.grad
    m.zero_grad(set_to_none=False)
    yield m.factor.grad is grad, grad
    m.zero_grad()
    yield m.factor.grad
    m(torch.ones(2)).pow(2).sum().backward(create_graph=True)
    m.zero_grad(set_to_none=False)
    yield m.factor.grad


@case
def apply_visits_children_first(torch):
    m = tree(torch)
    order: list[str] = []
    found = {id(x): n for n, x in m.named_modules()}
    yield m.apply(lambda x: order.append(found[id(x)])) is m
    yield order


# Conversion


@case.lines("""
    m.double()
    m.half()
    m.bfloat16()
    m.float()
    m.type(torch.float64)
    m.cpu()
    m.to(torch.float64)
    m.to(dtype=torch.float16)
    m.to("cpu", torch.float64)
    m.to(torch.device("cpu"))
    m.to(torch.ones(1, dtype=torch.float64))
    m.to(tensor=torch.ones(1, dtype=torch.float64), non_blocking=True)
    m.to()
    m.to(None, torch.float64)
    m.to(float)
    m.to(1j)
    m.to(torch.complex64)
    m.to(torch.int32)
    m.to("cpu", torch.float64, True, True)
    m.to(torch.float32, "cpu")
    m.to(torch.float32, None)
    m.to(foo=1)
    m.to("cpu", tensor=1)
    m.to(1, 2, 3, 4, 5)
    m.to([1])
    m.to("foo")
    m.to(torch.channels_last)
    m.to(memory_format=3)
    m.to(torch.float32, copy=True)
    m.to(memory_format=torch.channels_last)
""")
def conversions(torch, line):
    m = scale_class(torch)()
    factor = m.factor
    m(torch.ones(2)).sum().backward()
    result = attempt(eval, line, {"torch": torch, "m": m})
    yield result if isinstance(result, Exception) else result is m
    yield m.factor, m.factor is factor, m.factor.grad
    yield m.calls, m.scratch, type(m.factor)


@case
def to_empty(torch):
    m = scale_class(torch)().to("meta")
    yield m.factor, m.calls.is_meta, isinstance(m.factor, torch.nn.Parameter)
    yield attempt(m.to, "cpu")
    yield m.to_empty(device="cpu") is m
    yield m.factor.shape, m.factor.device, m.factor.requires_grad


@case
def apply_function(torch):
    m = tree(torch)
    m._apply(lambda t: t + 1)
    yield m.a.factor, m.a.calls, m.c.inner.factor
    m._apply(lambda t: t * 0, recurse=False)
    yield m.a.factor


# Printing, copies and pickles


@case
def reprs(torch):
    nn = torch.nn

    class Named(nn.Module):
        def __init__(self, text: str = "") -> None:
            super().__init__()
            self.text = text

        def extra_repr(self) -> str:
            return self.text

    yield repr(nn.Module()), repr(Named("a=1")), repr(Named("a\nb"))
    m = Named("x")
    m.child = Named("a\n\nb")
    m.none = nn.Module()
    m.none.inner = Named()
    m.add_module("gone", None)
    print(m)
    m.text = ""
    print(m)


@case
def deep_copies(torch):
    m = tree(torch)
    m.c.register_forward_hook(show_grads("hook"))
    m.a(torch.ones(2)).sum().backward()
    new = copy.deepcopy(m)
    yield new.a is new.b, new.c.tied is new.a.factor, new.a.factor is m.a.factor
    yield new.a.factor, new.a.factor.grad, len(new.c._forward_hooks), new.a.scratch
    with torch.no_grad():
        new.a.factor.zero_()
    yield m.a.factor
    shallow = copy.copy(m)
    yield shallow.a is m.a, shallow._parameters is m._parameters


@case
def pickles(torch):
    m = torch.nn.Module()
    m.p = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    m.frozen = torch.nn.Parameter(torch.tensor([3]), requires_grad=False)
    m.p.tag = "kept"
    m.b = torch.nn.Buffer(torch.ones(1), persistent=False)
    new = pickle.loads(pickle.dumps(m))
    yield new.p, type(new.p), new.frozen, new.p.tag
    yield isinstance(new.b, torch.nn.Buffer), sorted(new._non_persistent_buffers_set)
    old = m.__getstate__()
    for field in ("_forward_pre_hooks_with_kwargs", "_is_full_backward_hook"):
        del old[field]
    revived = torch.nn.Module.__new__(torch.nn.Module)
    revived.__setstate__(old)
    yield sorted(revived.__dict__)


# Layers of classes that find their weights elsewhere


@case
def weights_that_classes_find_elsewhere(torch):
    nn = torch.nn

    class Scaled(nn.Linear):
        @property
        def weight(self):
            return 2 * self.own

    class Looking(nn.Linear):
        def __getattribute__(self, name):
            found = super().__getattribute__(name)
            return found

        def __getattr__(self, name):
            found = super().__getattr__(name)
            return found + 1 if name == "bias" else found

    class Constant(nn.LayerNorm):
        bias = torch.full((2,), 7.0)

    x = torch.eye(2)
    m = Scaled(2, 2, bias=False)  # registers what the property cannot find yet
    m.own = nn.Parameter(torch.ones(2, 2))
    yield m(x), sorted(names(m.named_parameters()))
    m = Looking(2, 2)
    with torch.no_grad():
        m._parameters["weight"].fill_(1.0)
        m._parameters["bias"].fill_(3.0)
    yield m(x)
    yield attempt(lambda: Constant(2, bias=False))
    plain = nn.Linear(2, 2)
    plain._parameters["weight"] = nn.Parameter(torch.ones(2, 2))
    del plain.bias
    plain.bias = torch.tensor([1.0, 2.0])
    yield plain(x)
    with torch.no_grad():
        plain.weight = nn.Parameter(torch.zeros(2, 2))
    yield plain(x)
    del plain.weight
    yield attempt(plain, x)
