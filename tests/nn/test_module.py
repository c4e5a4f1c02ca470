"""`nn.Module` and `nn.parameter`, compared with PyTorch."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from typing import Any

from tests.oracle import attempt, case


def scale_class(torch: Any) -> Any:
    """A small module: one parameter, two buffers, no layer of the library."""

    class Scale(torch.nn.Module):
        def __init__(self, n: int = 2) -> None:
            super().__init__()
            self.factor = torch.nn.Parameter(torch.full((n,), 2.0))
            self.register_buffer("calls", torch.tensor(0))
            self.register_buffer("scratch", torch.zeros(n), persistent=False)

        def forward(self, x: Any) -> Any:
            return x * self.factor

    return Scale


def tree(torch: Any) -> Any:
    """A module that holds one module twice and one parameter twice."""
    scale = scale_class(torch)
    root = torch.nn.Module()
    root.a = scale()
    root.b = root.a
    root.c = torch.nn.Module()
    root.c.inner = scale(3)
    root.c.tied = root.a.factor
    root.empty = None
    root.register_module("nothing", None)
    root.register_parameter("absent", None)
    root.register_buffer("no_buffer", None)
    return root


def names(pairs: Any) -> list[str]:
    return [name for name, _ in pairs]


# Registration


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


# State dicts


@case
def state_dict(torch):
    m = tree(torch)
    state = m.state_dict()
    yield state, type(state), state._metadata, type(state._metadata)
    yield state["a.factor"].data_ptr() == m.a.factor.data_ptr()
    yield m.state_dict(prefix="p.", keep_vars=True)["p.a.factor"] is m.a.factor
    into = OrderedDict()
    yield m.state_dict(destination=into) is into, list(into), hasattr(into, "_metadata")
    yield list(m.state_dict(OrderedDict(), "old."))


@case
def load_state_dict(torch):
    m, other = tree(torch), tree(torch)
    with torch.no_grad():
        other.a.factor.fill_(7)
        other.a.calls.fill_(9)
    factor = m.a.factor
    yield m.load_state_dict(other.state_dict())
    yield m.a.factor is factor, m.a.factor, m.a.calls
    state = other.state_dict()
    del state["a.calls"], state["c.inner.factor"]
    state["a.more"] = torch.ones(1)
    state["z.deep.key"] = torch.ones(1)
    state["stray"] = torch.ones(1)
    yield attempt(m.load_state_dict, state)
    yield m.load_state_dict(state, strict=False)
    yield repr(m.load_state_dict(state, strict=False))
    state["a.factor"] = torch.ones(5)
    state["c.tied"] = "text"
    yield attempt(m.load_state_dict, state)
    yield attempt(m.load_state_dict, state, False)
    yield attempt(m.load_state_dict, [1])


@case
def load_by_assignment(torch):
    m = scale_class(torch)()
    state = {"factor": torch.zeros(2), "calls": torch.tensor(3)}
    factor = m.factor
    yield m.load_state_dict(state, assign=True)
    yield m.factor is factor, m.factor, m.calls is state["calls"], type(m.factor)
    own = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    m.load_state_dict({"factor": own, "calls": torch.tensor(1)}, assign=True)
    yield m.factor is own, own.requires_grad


@case
def load_scalar_with_a_dimension(torch):
    m = torch.nn.Module()
    m.p = torch.nn.Parameter(torch.tensor(1.0))
    m.load_state_dict({"p": torch.tensor([5.0])})
    yield m.p
    yield attempt(m.load_state_dict, {"p": torch.tensor([5.0, 6.0])})


@case
def load_other_dtype(torch):
    m = scale_class(torch)()
    m.load_state_dict({"factor": torch.tensor([1, 2]), "calls": torch.tensor(2.7)})
    return m.factor, m.calls


@case
def load_onto_meta(torch):
    m = scale_class(torch)().to("meta")
    m.load_state_dict({"factor": torch.ones(2), "calls": torch.tensor(1)})
    return m.factor.is_meta


@case
def versions(torch):
    class New(torch.nn.Module):
        _version = 3

        def _load_from_state_dict(
            self, state: Any, prefix: str, metadata: Any, *rest: Any
        ) -> None:
            print(prefix, metadata, rest[0])
            super()._load_from_state_dict(state, prefix, metadata, *rest)

    m = torch.nn.Module()
    m.sub = New()
    m.sub.p = torch.nn.Parameter(torch.ones(1))
    state = m.state_dict()
    yield state._metadata
    m.load_state_dict(state)
    m.load_state_dict(dict(state))


@case
def extra_state(torch):
    class Counter(torch.nn.Module):
        def get_extra_state(self) -> Any:
            return {"n": self.n}

        def set_extra_state(self, state: Any) -> None:
            self.n = state["n"]

    m = torch.nn.Module()
    m.sub = Counter()
    m.sub.n = 3
    state = m.state_dict()
    yield state
    m.sub.n = 0
    m.load_state_dict(state)
    yield m.sub.n
    yield attempt(m.load_state_dict, {})
    yield attempt(torch.nn.Module().load_state_dict, {"_extra_state": 1})


@case
def state_dict_hooks(torch):
    m = tree(torch)
    a = m.a
    a.register_state_dict_pre_hook(lambda mod, prefix, keep: print("pre", prefix, keep))
    a.register_state_dict_post_hook(
        lambda mod, state, prefix, meta: state.update({prefix + "more": 1})
    )
    yield list(m.state_dict())

    def replaces(mod: Any, state: Any, prefix: str, meta: Any) -> Any:
        return {"only": len(state)}

    handle = m._register_state_dict_hook(replaces)
    yield m.state_dict()
    handle.remove()
    m.register_state_dict_post_hook(replaces)
    yield attempt(m.state_dict)
    yield attempt(m._register_state_dict_hook, replaces)


@case
def load_state_dict_hooks(torch):
    m = scale_class(torch)()
    state = m.state_dict()
    m._register_load_state_dict_pre_hook(lambda *args: print(len(args), args[1]))

    def pre(module: Any, state: Any, prefix: str, *rest: Any) -> None:
        print(type(module).__name__, list(state))
        state[prefix + "factor"] = state.pop(prefix + "old")

    m.register_load_state_dict_pre_hook(pre)
    m.register_load_state_dict_post_hook(lambda mod, keys: keys.missing_keys.clear())
    yield m.load_state_dict({"old": torch.zeros(2)})
    yield m.factor, list(state)
    m.register_load_state_dict_post_hook(lambda mod, keys: keys)
    yield attempt(m.load_state_dict, {"old": torch.zeros(2)})


# Calls and hooks


@case
def forward_hooks(torch):
    m = scale_class(torch)()
    log: list[Any] = []
    m.register_forward_pre_hook(lambda mod, args: log.append(("pre", args[0].sum())))
    m.register_forward_pre_hook(lambda mod, args: args[0] + 1)
    m.register_forward_pre_hook(lambda mod, args: log.append("first"), prepend=True)
    m.register_forward_hook(lambda mod, args, out: log.append(("post", out)))
    last = m.register_forward_hook(lambda mod, args, out: out * 10)
    m.register_forward_hook(lambda mod, args, out: log.append("front"), prepend=True)
    yield m(torch.ones(2)), log
    last.remove()
    last.remove()
    yield m(torch.ones(2)), len(m._forward_hooks)


@case
def hooks_with_keywords(torch):
    class Shift(torch.nn.Module):
        def forward(self, x: Any, by: int = 0) -> Any:
            return x + by

    m = Shift()
    pre = m.register_forward_pre_hook(
        lambda mod, args, kwargs: (args, {"by": kwargs["by"] + 1}), with_kwargs=True
    )
    m.register_forward_hook(
        lambda mod, args, kwargs, out: (out, kwargs), with_kwargs=True
    )
    yield m(1, by=2)
    pre.remove()
    yield m._forward_pre_hooks_with_kwargs
    m.register_forward_pre_hook(lambda mod, args, kwargs: args, with_kwargs=True)
    yield attempt(m, 1, by=2)


@case
def always_called_hooks(torch):
    class Fails(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("no")

    def raises(mod: Any, args: Any, out: Any) -> None:
        raise RuntimeError("hook")

    m = Fails()
    m.register_forward_hook(lambda mod, args, out: print("skipped"))
    m.register_forward_hook(
        lambda mod, args, out: print("called", args, out), always_call=True
    )
    m.register_forward_hook(raises, always_call=True)
    m.register_forward_hook(
        lambda mod, args, kw, out: print("kw", kw), always_call=True, with_kwargs=True
    )
    yield attempt(m, 1)
    m = torch.nn.Module()
    m.forward = lambda x: x
    m.register_forward_hook(raises, always_call=True)
    yield attempt(m, 1)


@case
def global_forward_hooks(torch):
    hooks = torch.nn.modules.module
    m = scale_class(torch)()
    handles = [
        hooks.register_module_forward_pre_hook(lambda mod, args: (args[0] + 1,)),
        hooks.register_module_forward_hook(
            lambda mod, args, kw, out: print(kw), with_kwargs=True
        ),
        hooks.register_module_forward_hook(
            lambda mod, args, out: print("always", out), always_call=True
        ),
    ]
    yield m(torch.ones(2))
    yield type(attempt(m, "text")).__name__
    for handle in handles:
        handle.remove()
    yield m(torch.ones(2))


@case
def forward_set_on_the_instance(torch):
    m = scale_class(torch)()
    m.forward = lambda x: "mine"
    return m(1)


def show_grads(name: str) -> Any:
    return lambda mod, *grads: print(name, *grads)


@case
def full_backward_hooks(torch):
    m = scale_class(torch)()
    m.register_full_backward_hook(show_grads("hook"))
    m.register_full_backward_pre_hook(show_grads("pre"))
    x = torch.ones(2, requires_grad=True)
    y = m(x)
    yield y
    y.sum().backward()
    yield x.grad, m.factor.grad


@case
def backward_hooks_that_replace(torch):
    m = scale_class(torch)()
    m.register_full_backward_hook(lambda mod, gi, go: (gi[0] * 100,))
    m.register_full_backward_hook(show_grads("second"))
    m.register_full_backward_hook(show_grads("first"), prepend=True)
    m.register_full_backward_pre_hook(lambda mod, go: (go[0] * 3,))
    x = torch.ones(2, requires_grad=True)
    m(x).sum().backward()
    return x.grad, m.factor.grad


@case
def backward_hooks_with_wrong_lengths(torch):
    m = scale_class(torch)()
    x = torch.ones(2, requires_grad=True)
    handle = m.register_full_backward_hook(lambda mod, gi, go: ())
    yield attempt(m(x).sum().backward)
    handle.remove()
    m.register_full_backward_pre_hook(lambda mod, go: (1, 2))
    yield attempt(m(x).sum().backward)


@case
def backward_hooks_without_input_grads(torch):
    m = scale_class(torch)()
    handle = m.register_full_backward_hook(show_grads("hook"))
    m(torch.ones(2)).sum().backward()
    yield m.factor.grad
    handle.remove()
    m.register_full_backward_hook(lambda mod, gi, go: (torch.ones(2),))
    yield attempt(m(torch.ones(2)).sum().backward)


@case
def backward_hooks_of_several_values(torch):
    class Two(torch.nn.Module):
        def forward(self, a: Any, n: int, b: Any) -> Any:
            return a * n, "text", b * 2

    m = Two()
    m.register_full_backward_hook(show_grads("hook"))
    a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    first, _, second = m(a, 3, b)
    (first + second).sum().backward()
    yield a.grad, b.grad
    with torch.no_grad():
        yield m(a, 3, b)
    first, _, _ = m(a, 3, torch.ones(1))
    first.backward()


@case
def backward_hook_on_other_results(torch):
    class Gives(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return {"y": x * 2}

    m = Gives()
    m.register_full_backward_hook(show_grads("hook"))
    x = torch.ones(1, requires_grad=True)
    m(x)["y"].backward()
    return x.grad


@case
def non_full_backward_hooks(torch):
    class One(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2

    class Chain(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return (x * 2).exp()

    class Nested(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return [x * 2]

    class Pair(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2, x * 3

    for cls in (One, Chain, Nested, Pair):
        m = cls()
        m.register_backward_hook(lambda mod, gi, go: print(type(mod).__name__))
        out = m((torch.ones(1, requires_grad=True)) * 1)
        while not hasattr(out, "backward"):
            out = out[0]
        out.backward()
    yield attempt(m.register_full_backward_hook, print)
    m = One()
    m.register_full_backward_hook(print)
    yield attempt(m.register_backward_hook, print)


@case
def global_backward_hooks(torch):
    hooks = torch.nn.modules.module
    pre = hooks.register_module_full_backward_pre_hook(show_grads("pre"))
    full = hooks.register_module_full_backward_hook(show_grads("full"))
    yield attempt(hooks.register_module_backward_hook, print)
    m = scale_class(torch)()
    m(torch.ones(2, requires_grad=True)).sum().backward()
    pre.remove()
    full.remove()
    m(torch.ones(2, requires_grad=True)).sum().backward()
    yield m.factor.grad


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


# Parameters and buffers


@case.lines("""
    nn.Parameter(torch.tensor([1., 2.]))
    nn.Parameter()
    nn.Parameter(torch.ones(2), requires_grad=False)
    nn.Parameter(torch.ones(2), False).requires_grad
    nn.Parameter(nn.Parameter(torch.ones(2)))
    nn.Parameter(torch.tensor([1, 2]))
    nn.Parameter(torch.tensor([1, 2]), requires_grad=False)
    nn.Parameter([1, 2])
    nn.Parameter(torch.ones(2, requires_grad=True) * 2)
    nn.Parameter(torch.ones(2)) + 1
    type(nn.Parameter(torch.ones(2)) + 1)
    type(nn.Parameter(torch.ones(2)).data)
    type(nn.Parameter(torch.ones(2)).detach())
    nn.Parameter(torch.ones(2)).is_leaf
    isinstance(torch.ones(1), nn.Parameter)
    isinstance(nn.Parameter(), torch.Tensor)
    isinstance(nn.Parameter(), nn.Buffer)
    repr(nn.Parameter(torch.ones(1)))
    str(nn.Parameter(torch.ones(1)))
    [nn.Parameter(torch.ones(1))]
    nn.Buffer()
    nn.Buffer(torch.ones(2))
    nn.Buffer(torch.ones(2), persistent=False).persistent
    nn.Buffer(torch.ones(2), False)
    isinstance(nn.Buffer(), nn.Buffer)
    isinstance(nn.Buffer(), nn.Parameter)
    isinstance(torch.ones(1), nn.Buffer)
    type(nn.Buffer(torch.ones(1)))
    repr(nn.UninitializedParameter())
    nn.UninitializedParameter().shape
    nn.UninitializedParameter().share_memory_()
    nn.UninitializedParameter(requires_grad=False).requires_grad
    nn.UninitializedParameter(dtype=torch.float64).dtype
    repr(nn.UninitializedBuffer())
    nn.parameter.is_lazy(nn.UninitializedParameter())
    nn.parameter.is_lazy(nn.Parameter())
    isinstance(nn.UninitializedParameter(), nn.Parameter)
""")
def parameters(torch, line):
    nn = torch.nn
    if not hasattr(nn, "UninitializedBuffer"):
        nn.UninitializedBuffer = nn.parameter.UninitializedBuffer
    error = attempt(eval, line, {"torch": torch, "nn": nn})
    if isinstance(error, ValueError):  # names the function by its address
        return type(error), str(error).partition(" in <")[0]
    return error


@case.lines("""
    nn.UninitializedParameter() + 1
    torch.sum(nn.UninitializedParameter())
""")
def uninitialized_parameters_refuse(torch, line):
    nn = torch.nn
    if not hasattr(nn, "UninitializedBuffer"):
        nn.UninitializedBuffer = nn.parameter.UninitializedBuffer
    error = attempt(eval, line, {"torch": torch, "nn": nn})
    if isinstance(error, ValueError):  # names the function by its address
        return type(error), str(error).partition(" in <")[0]
    return error


@case
def parameter_shares_storage(torch):
    x = torch.ones(2)
    p = torch.nn.Parameter(x)
    with torch.no_grad():
        p.add_(1)
    return x, p, p.data_ptr() == x.data_ptr()


@case
def parameter_copies(torch):
    p = torch.nn.Parameter(torch.ones(2))
    p.tag = 1
    p.sum().backward()
    q = copy.deepcopy(p)
    yield q, q.grad, hasattr(q, "tag"), q is p, type(q)
    memo: dict[int, Any] = {}
    yield copy.deepcopy(p, memo) is copy.deepcopy(p, memo)
    yield pickle.loads(pickle.dumps(p)), pickle.loads(pickle.dumps(p)).tag
    lazy = torch.nn.UninitializedParameter(requires_grad=False)
    yield repr(copy.deepcopy(lazy)), pickle.loads(pickle.dumps(lazy)).requires_grad


@case
def materialize(torch):
    p = torch.nn.UninitializedParameter()
    p.materialize((2, 3), dtype=torch.float64)
    yield type(p), p.shape, p.dtype, p.requires_grad
    b = torch.nn.parameter.UninitializedBuffer()
    b.materialize((2,))
    yield type(b), b.shape, isinstance(b, torch.nn.Buffer)
    m = torch.nn.Module()
    m.p = torch.nn.UninitializedParameter()
    m.double()
    yield m.p.data.dtype, type(m.p), repr(m.p), list(m._parameters)
    error = attempt(
        scale_class(torch)().load_state_dict,
        {"factor": torch.nn.UninitializedParameter(), "calls": torch.tensor(0)},
    )
    yield type(error)
    yield m.load_state_dict({"p": torch.nn.UninitializedParameter()})


@case
def parameter_of_a_subclass(torch):
    class Special(torch.Tensor):
        pass

    p = torch.nn.Parameter(torch.ones(2).as_subclass(Special))
    yield type(p), isinstance(p, torch.nn.Parameter), p.requires_grad
    m = torch.nn.Module()
    m.p = p
    yield list(m._parameters)


@case
def removable_handles(torch):
    hooks = torch.utils.hooks
    first, extra = OrderedDict(), OrderedDict()
    handle = hooks.RemovableHandle(first, extra_dict=extra)
    first[handle.id] = extra[handle.id] = 1
    with handle:
        yield len(first), len(extra)
    yield len(first), len(extra)
    two = hooks.RemovableHandle(first, extra_dict=[extra, first])
    yield two.id > handle.id
    first[two.id] = 2
    d, new = pickle.loads(pickle.dumps((first, two)))
    yield len(d), new.id == two.id
    new.remove()
    yield len(d), len(first)
