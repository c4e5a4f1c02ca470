"""Subclasses of Tensor and `__torch_function__` (`torch.overrides`)."""

from __future__ import annotations

import copy
import pickle
import warnings

import pytest

import torchshim
from tests.oracle import attempt, case


def plain_subclass(torch):
    # PyTorch's and torchshim's differ, and pickle finds them here.
    global Plain
    Plain = type("Plain", (torch.Tensor,), {"__module__": __name__})
    return Plain


def logging_subclass(torch, seen):
    """A subclass that notes what is called, with the types it is called for."""

    class Logging(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((func.__name__, [t.__name__ for t in types], len(args)))
            return super().__torch_function__(func, types, args, kwargs)

    return Logging


def name_of(value):
    if isinstance(value, (tuple, list)):
        return [name_of(v) for v in value]
    return type(value).__name__


@case.lines("""
    x + 1
    1 + x
    x.sum()
    x[0]
    x[x > 1]
    x.detach()
    x.clone()
    x.view(2, 1)
    x.T
    x.data
    x.double()
    x.to(torch.int32)
    x.split(1)
    torch.max(x, 0)
    torch.cat([x, torch.ones(1)])
    torch.ones(2).add_(x)
    torch.add(torch.ones(2), x)
    torch.zeros_like(x)
    x.new_zeros(3)
    x.unbind()
    torch.einsum("i,i", x, x)
    torch.nn.functional.softmax(x, 0)
    torch.nn.functional.cross_entropy(x[None], torch.tensor([1]))
    torch.nn.Linear(2, 1)(x).shape
    torch.fft.fft(x)
    torch.linalg.norm(x)
    torch.autograd.grad(y.sum(), y)
    y * 2
    (y * 2).sum().backward(); y.grad
    torch.as_tensor(x)
    list(x)
    x.shape
    x.sum().item()
    x.tolist()
    str(x), repr(x[0]), f"{x[0]}"
    torch.is_tensor(x), torch.is_floating_point(x), isinstance(x, torch.Tensor)
    Plain(2, 3).shape
    Plain([1, 2])
    Plain(torch.ones(2))
    torch.Tensor._make_subclass(Plain, torch.ones(2), True)
    torch.Tensor._make_subclass(int, torch.ones(2))
    torch.ones(2).as_subclass(int)
    type(x.as_subclass(torch.Tensor)).__name__, y.as_subclass(torch.Tensor).data
    x.tag, hasattr(x + 1, "tag")
    copy.copy(x).tag
    pickle.loads(pickle.dumps(x)).tag
    copy.deepcopy(x)
    torch.nn.Parameter(x)
    torch.nn.Parameter(torch.ones(2)) * 2
    torch.nn.Parameter(torch.ones(2).as_subclass(Disabled))
    torch.ones(2).as_subclass(Disabled) + 1
    torch.ones(2).as_subclass(Disabled)
    torch.broadcast_tensors(x, torch.ones(1))
    type("Named", (torch.nn.Parameter,), {})(torch.ones(2))
""")
def subclasses(torch, line):
    kind = plain_subclass(torch)
    x = kind([1.0, 2.0])
    x.tag = 5
    impl = torch._C._disabled_torch_function_impl
    disabled = type("Disabled", (torch.Tensor,), {"__torch_function__": impl})
    names = {
        **{"torch": torch, "x": x, "copy": copy, "pickle": pickle},
        **{"Plain": kind, "Disabled": disabled},
        "y": kind([1.0, 2.0]).requires_grad_(),
    }
    *before, last = line.split("; ")
    for part in before:
        exec(part, names)
    result = attempt(eval, last, names)
    return name_of(result), str(result) if "item" not in line else ""


@case(warnings=False)
def deprecated_forms(torch):
    seen = []

    class Noting(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((func.__name__, args, kwargs))
            return super().__torch_function__(func, types, args, kwargs)

    x, plain = torch.ones(2).as_subclass(Noting), torch.ones(2)
    yield plain.clone().add_(-0.5, x), torch.add(plain, -0.5, x)
    yield torch.add(plain, 2, x, out=torch.empty(2))
    yield plain.clone().addcmul_(2, x, x)
    yield [
        (name, [type(a).__name__ for a in args], [*(kwargs or {})])
        for name, args, kwargs in seen
    ]


@case.lines("""
    x + p
    p + x
    p - x
    1 - x
    2 / x
    p / x
    x @ p
    -x
    ~(x > 1)
    x == p
    p < x
    x.add(p)
    p.add(x)
    torch.add(p, x)
    x[0]
    p[x.long() - 1]
    x.shape
    x.requires_grad
    x.size()
    x.T
    x.float()
    p.to(x)
    p.type_as(x)
    x.view(4)
    x.sum().item()
    torch.stack([p, x])
    torch.zeros_like(x)
    torch.where(x > 1, x, p)
    torch.nn.functional.linear(x, p)
    torch.is_floating_point(x)
    torch.numel(x)
    torch.equal(x, p)
    p.copy_(x)
    p.__setitem__(0, x[0])
    x.requires_grad_()
    x.new_zeros(2)
    x.__pos__()
    abs(x)
    True & x.bool()
    x.is_contiguous()
    x.data_ptr() and 0
    len(x)
""")
def what_handlers_see(torch, line):
    seen: list = []
    x = torch.tensor([[1.0, 2], [2, 1]]).as_subclass(logging_subclass(torch, seen))
    p = torch.ones(2, 2)
    result = eval(line, {"torch": torch, "x": x, "p": p})
    return seen, name_of(result)


@case(warnings=False).lines("""
    2 - x
    2 / x
    x // 2
    x**2
    2**x
    2 % x
    2 << x.int()
    p @ x
    len(x)
    2 in x
    x.norm()
    x.norm(2, dim=0)
    x.split(1)
    x.split(split_size=1, dim=1)
    x.unique(dim=0)
    x.unique_consecutive()
    x.unflatten(0, (1, 2))
    x.sum().backward()
    x.sum().backward(None, retain_graph=True)
    x.register_hook(print)
    x.register_post_accumulate_grad_hook(hook=print)
    x.is_shared()
    x.dim_order()
    torch.split(x, 1)
    torch.add(x, 1)
""")
def forms_that_handlers_see(torch, line):
    """Functions in Python hand on required arguments by position, others by name."""
    calls: list = []

    class Seeing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            shown = kwargs and {k: name_of(v) for k, v in sorted(kwargs.items())}
            calls.append((name_of(args), shown))
            return super().__torch_function__(func, types, args, kwargs or {})

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            shown = kwargs and {k: name_of(v) for k, v in sorted(kwargs.items())}
            calls.append(([t.__name__ for t in types], name_of(args), shown))
            return func(*args, **(kwargs or {}))

    plain = torch.tensor([[1.0, 2], [2, 1]], requires_grad=True)
    x = torch.tensor([[1.0, 2], [2, 1]]).as_subclass(Seeing).requires_grad_()
    eval(line, {"torch": torch, "x": x, "p": torch.ones(2, 2)})
    seen = calls[:]
    calls.clear()
    if any(known in line for known in ("len(", " in x", "split(")):
        return seen  # modes see other calls of these
    with Mode():
        eval(line, {"torch": torch, "x": plain, "p": torch.ones(2, 2)})
    return seen, calls


@case.lines("""
    x.requires_grad = True
    x.grad = None
    x.data = p
    x += 1
    x -= p
    x *= 2
    x /= 2
    x //= 2
    x %= 2
    x.note = 1
""")
def what_handlers_see_of_statements(torch, line):
    seen: list = []
    x = torch.ones(2).as_subclass(logging_subclass(torch, seen))
    names = {"x": x, "p": torch.ones(2)}
    exec(line, names)
    return seen, name_of(names["x"])


@case
def names_of_functions(torch):
    """What handlers get has a name, and is a key of tables."""
    seen: list = []

    class Resolving(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(torch.overrides.resolve_name(func))
            known = (
                torch.overrides.is_tensor_method_or_property(func),
                func in torch.overrides.get_testing_overrides(),
            )
            seen.append(known)
            return super().__torch_function__(func, types, args, kwargs)

    x = torch.ones(2, 2).as_subclass(Resolving)
    x + 1, torch.add(x, 1), x.add(1), x.shape, torch.nn.functional.relu(x)
    torch.split(x, 1), x[0], torch.fft.fft(x), torch.linalg.det(x), x.dim()
    x.requires_grad = False
    return seen


@case
def scalar_tensor(torch):
    """The example of a class beside Tensor, with a table of functions."""
    handled = {}

    def implements(function):
        def register(handler):
            handled[function] = handler
            return handler

        return register

    class ScalarTensor:
        def __init__(self, n, value):
            self._n, self._value = n, value

        def __repr__(self):
            return f"ScalarTensor(N={self._n}, value={self._value})"

        def tensor(self):
            return self._value * torch.eye(self._n)

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            good = all(issubclass(t, (torch.Tensor, ScalarTensor)) for t in types)
            if func not in handled or not good:
                return NotImplemented
            return handled[func](*args, **(kwargs or {}))

    @implements(torch.mean)
    def mean(input):
        return float(input._value) / input._n

    @implements(torch.add)
    def add(input, other):
        if isinstance(input, ScalarTensor) and isinstance(other, ScalarTensor):
            return ScalarTensor(input._n, input._value + other._value)
        return torch.add(
            *(getattr(v, "tensor", lambda v=v: v)() for v in (input, other))
        )

    @implements(torch.nn.functional.relu)
    def relu(input, inplace=False):
        return ScalarTensor(input._n, max(input._value, 0))

    @implements(torch.stack)
    def stack(tensors, dim=0):
        return len(tensors), dim

    d, p = ScalarTensor(2, 3), torch.ones(2, 2)
    yield torch.mean(d)
    yield repr(torch.add(d, d))
    yield torch.add(d, p), torch.add(p, d)
    yield repr(torch.nn.functional.relu(d))
    yield torch.stack([p, d], dim=1)
    error = attempt(torch.mul, p, d)
    yield type(error), str(error)
    error = attempt(torch.nn.functional.gelu, d)
    yield type(error)
    error = attempt(torch.nn.functional.softmax, d)
    yield type(error)
    yield type(attempt(lambda: p + d)), type(attempt(lambda: d + p)), p == d
    yield torch.overrides.is_tensor_like(d), torch.overrides.has_torch_function((d, p))
    yield torch.overrides.has_torch_function((p, torch.nn.Parameter(p)))
    for other in (object(), 3, None):
        yield attempt(torch.overrides.has_torch_function, other)
    yield torch.overrides.has_torch_function_unary(d)
    yield torch.overrides.has_torch_function_variadic(p, d)


@case(warnings=False).over("to_sparse", "to_sparse_csr", "nested", "quantized")
def tensors_of_other_kinds_override_nothing(torch, kind):
    if kind == "nested":
        x = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    elif kind == "quantized":
        x = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    else:
        x = getattr(torch.eye(2), kind)()

    class Other:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "answered", func.__name__

    def count(*args):
        if torch.overrides.has_torch_function(args):
            return torch.overrides.handle_torch_function(count, args, *args)
        return len(args)

    yield torch.overrides.has_torch_function_unary(x), count(x), count(x, Other())
    yield torch.overrides.has_torch_function_variadic(x, 1)
    yield torch.add(x, Other()), torch.mul(Other(), x), torch.cat([x, Other()])


@case
def precedence(torch):
    """Subclasses are asked before their parents, others from left to right."""
    seen: list = []

    def handler(answer):
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((cls.__name__, [t.__name__ for t in types]))
            return answer

        return {"__torch_function__": classmethod(__torch_function__)}

    first = type("First", (torch.Tensor,), handler(NotImplemented))
    child = type("Child", (first,), handler(NotImplemented))
    other = type("Other", (), handler("answered"))
    a, b = torch.ones(2).as_subclass(first), torch.ones(2).as_subclass(child)
    yield torch.where(a, b, other()), seen[:]
    seen.clear()
    yield torch.where(other(), a, b), seen[:]
    seen.clear()
    for call in (lambda: torch.add(a, b), lambda: a.add(b), lambda: a.shape):
        error = attempt(call)
        yield type(error), str(error).replace(__name__, "")
    error = attempt(torch.nn.functional.relu, a)
    yield type(error)
    yield type(attempt(lambda: a + b)), type(attempt(lambda: a + 1))


@case
def disabling(torch):
    """Within the blocks of `torch._C`, nothing is overridden."""
    x = torch.ones(2).as_subclass(plain_subclass(torch))
    state = torch._C._get_torch_function_state
    with torch._C.DisableTorchFunctionSubclass():
        yield (
            name_of(x + 1),
            name_of(x[0]),
            str(x),
            torch._C._is_torch_function_enabled(),
        )
        yield str(state())
    with torch._C.DisableTorchFunction():
        yield name_of(x + 1), str(state())
    yield name_of(x + 1), str(state())


def test_dispatch_is_refused():
    torch = torchshim

    class Dispatching(torch.Tensor):  # programs may have such classes and not use them
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args)

    class Inheriting(Dispatching):
        pass

    assert not isinstance(torch.ones(2), Dispatching)
    x = torch.ones(2)
    for make in (
        lambda: Dispatching([1.0]),
        lambda: x.as_subclass(Inheriting),
        lambda: torch.Tensor._make_subclass(Inheriting, x),
        lambda: torch.Tensor._make_wrapper_subclass(Dispatching, (2,)),
    ):
        with pytest.raises(NotImplementedError, match="__torch_dispatch__ is not supp"):
            make()

    from torchshim.utils._python_dispatch import TorchDispatchMode

    with pytest.raises(NotImplementedError, match="TorchFunctionMode"):
        TorchDispatchMode()


def test_lists_of_functions_agree():
    """Every function is overridable or not, and each has a name and a stand-in."""
    overrides = torchshim.overrides
    ignored = overrides.get_ignored_functions()
    stubs = overrides.get_testing_overrides()
    count = 0
    for functions in overrides.get_overridable_functions().values():
        for function in functions:
            count += 1
            assert function not in ignored
            assert overrides.resolve_name(function)
            assert stubs[function]() == -1
    assert count > 900
    assert torchshim.is_tensor in ignored


def test_plain_tensors_keep_the_hot_path():
    """Parameters and classes that override nothing are found as Tensor is."""
    torch = torchshim
    impl = torch._C._disabled_torch_function_impl
    disabled = type("Disabled", (torch.Tensor,), {"__torch_function__": impl})
    x = torch.nn.Parameter(torch.ones(2))
    y = torch.ones(2).as_subclass(disabled)
    z = torch.ones(2).as_subclass(type("Mine", (torch.Tensor,), {}))
    for tensor in (x, y):
        tensor + 1
        assert tensor._key == tensor._slot >= 0
    z + 1
    assert z._key != z._slot


@pytest.mark.live
def test_tensors_of_pytorchs_are_refused(real_torch):
    theirs, ours = real_torch.ones(3), torchshim.ones(3)
    for call in (
        lambda: torchshim.exp(theirs),
        lambda: ours + theirs,
        lambda: torchshim.cat([ours, theirs]),
        lambda: torchshim.nn.Linear(3, 2)(theirs),
        lambda: ours.copy_(theirs),
    ):
        with pytest.raises(TypeError, match="a tensor of PyTorch's was given to torch"):
            call()
    assert torchshim.from_dlpack(theirs).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "call",
    [torchshim.tensor, torchshim.as_tensor, torchshim.exp, torchshim.ones(2).add],
)
def test_tensors_of_pytorchs_own_are_refused(call):
    base = type("TensorBase", (), {"__module__": "torch._C"})
    handler = classmethod(lambda cls, *args, **kwargs: NotImplemented)
    theirs = type("Tensor", (base,), {"__torch_function__": handler})
    with pytest.raises(TypeError, match="a tensor of PyTorch's was given"):
        call(theirs())


@case
def who_is_asked_and_what_is_not_wrapped(torch):
    overrides = torch.overrides

    class First(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            print(func in overrides.get_default_nowrap_functions())
            return super().__torch_function__(func, types, args, kwargs or {})

    class Second(First):
        pass

    x, y = (torch.ones(2).as_subclass(cls) for cls in (First, Second))
    asked = overrides._get_overloaded_args([x, 3, torch.ones(1), y, x])
    yield [type(value).__name__ for value in asked]
    classes = [First, int, Second, torch.Tensor]
    yield [c.__name__ for c in overrides._get_overloaded_args(classes, lambda c: c)]
    _ = x.grad, x + 1


@case
def attributes_of_their_own(torch):
    """As MONAI's `MetaTensor` has them."""

    class Described(torch.Tensor):
        def __new__(cls, data, meta):
            made = torch.as_tensor(data).as_subclass(cls)
            made._meta, made._data = meta, None
            return made

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            found = super().__torch_function__(func, types, args, kwargs or {})
            if isinstance(found, cls):
                found._meta = next(a._meta for a in args if isinstance(a, cls))
            return found

    x = Described([1.0, 2.0], {"spacing": 3})
    y = (x * 2)[:1].view(1, 1)
    y._meta = {**y._meta, "cut": True}
    return x._meta, y._meta, x.ndim, y.shape, y.sum(), type(y).__name__


@case
def attributes_beside_a_mixin(torch):
    class Mixed:
        def __init__(self):
            self.notes = []

    class Described(Mixed, torch.Tensor):
        @staticmethod
        def __new__(cls, data):
            return torch.as_tensor(data).as_subclass(cls)

        def __init__(self, data):
            super().__init__()

    x, y = Described([1.0, 2.0]), Described([3.0, 4.0])
    first = x[:1].add_(1)
    x.notes.append("changed")
    yield [dict(vars(t)) for t in (x, first, x * 2)]
    y.__dict__ = x.__dict__.copy()
    y.__dict__["more"] = 1
    yield x + y, dict(vars(y)), y.more, dict(vars(x)), first


@case
def backward_passes_that_a_class_sees(torch):
    seen = []

    class Seeing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((func.__name__, name_of(args), sorted(kwargs or {})))
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.ones(2, requires_grad=True)
    torch.autograd.backward((x * 2).as_subclass(Seeing), torch.ones(2))
    torch.autograd.backward([(x * 2).as_subclass(Seeing)], [torch.ones(2)], True)
    torch.autograd.backward(x * 2, torch.ones(2), inputs=x.as_subclass(Seeing))
    yield list(seen), x.grad
    seen.clear()
    found = torch.autograd.grad((x * 2).as_subclass(Seeing), x, torch.ones(2))
    yield name_of(found), list(seen)
    found = torch.autograd.grad((x * 2).as_subclass(Seeing), {"x": x}, torch.ones(2))
    yield sorted(found), name_of(found["x"])

    class Refusing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    for function in (torch.autograd.backward, torch.autograd.grad):
        y = (x * 2).as_subclass(Refusing)
        error = attempt(function, y, x)
        yield type(error).__name__, str(error).partition(" on types")[0]


@case
def handlers_as_plain_methods(torch):
    class Plain(torch.Tensor):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return 1

    x, before = Plain(), torch.is_warn_always_enabled()
    for _ in range(2):
        torch.set_warn_always(True)
        try:
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                yield torch.abs(x), torch.nn.functional.dropout(x)
        finally:
            torch.set_warn_always(before)
        yield [(w.category, str(w.message).partition(",")[0]) for w in found]
