"""Extending torch: duck types, logging subclasses, modes, tensors with metadata."""

import copy
import functools
import pickle

import torch
from torch.overrides import TorchFunctionMode

HANDLED_FUNCTIONS = {}


class ScalarTensor:
    def __init__(self, N, value):
        self._N = N
        self._value = value

    def __repr__(self):
        return f"ScalarTensor(N={self._N}, value={self._value})"

    def tensor(self):
        return self._value * torch.eye(self._N)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if kwargs is None:
            kwargs = {}
        if func not in HANDLED_FUNCTIONS or not all(
            issubclass(t, (torch.Tensor, ScalarTensor)) for t in types
        ):
            return NotImplemented
        return HANDLED_FUNCTIONS[func](*args, **kwargs)


def implements(torch_function):
    @functools.wraps(torch_function)
    def decorator(func):
        HANDLED_FUNCTIONS[torch_function] = func
        return func

    return decorator


@implements(torch.mean)
def mean(input):
    return float(input._value) / input._N


d = ScalarTensor(5, 2)
print(d, d.tensor(), torch.mean(d))
try:
    torch.add(d, 2)
except TypeError as e:
    print(e)


def ensure_tensor(data):
    if isinstance(data, ScalarTensor):
        return data.tensor()
    return torch.as_tensor(data)


@implements(torch.add)
def add(input, other):
    try:
        if input._N == other._N:
            return ScalarTensor(input._N, input._value + other._value)
        else:
            raise ValueError("Shape mismatch!")
    except AttributeError:
        return torch.add(ensure_tensor(input), ensure_tensor(other))


s = ScalarTensor(2, 2)
print(torch.add(s, s))
t = torch.tensor(
    [
        [
            1,
            1,
        ],
        [1, 1],
    ]
)
print(torch.add(s, t))
try:
    torch.mul(s, 3)
except TypeError as e:
    print(e)
try:
    torch.stack([s, t])
except TypeError as e:
    print(e)


class MetadataTensor:
    def __init__(self, data, metadata=None, **kwargs):
        self._t = torch.as_tensor(data, **kwargs)
        self._metadata = metadata

    def __repr__(self):
        return f"Metadata:\n{self._metadata}\n\ndata:\n{self._t}"

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if kwargs is None:
            kwargs = {}
        metadatas = tuple(a._metadata for a in args if hasattr(a, "_metadata"))
        args = [getattr(a, "_t", a) for a in args]
        assert len(metadatas) > 0
        ret = func(*args, **kwargs)
        return MetadataTensor(ret, metadata=metadatas[0])


metadata = {"owner": "Ministry of Silly Walks"}
m = MetadataTensor([[1, 2], [3, 4]], metadata=metadata)
t = torch.tensor([[1, 2], [1, 2]])
print(torch.add(t, m))
print(torch.mul(t, m))


class LoggingTensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is not torch.Tensor.__repr__:
            print(
                f"func: {func.__name__}, args: {[type(a).__name__ for a in args]!r}, "
                f"kwargs: {kwargs!r}"
            )
        if kwargs is None:
            kwargs = {}
        return super().__torch_function__(func, types, args, kwargs)


x = LoggingTensor([1.0, 2.0, 3.0])
y = x * 2 + 1
print(type(y))
z = torch.nn.functional.softmax(y, 0)
w = y.sum()
w2 = y[0]
v = y.view(3, 1)
y += 1
q = 2 - y
r = y.pow(2)
u = -y
b = y > 2
lst = list(y)
print(len(y), y.shape, y.dtype, y.T.shape, bool(b.any()))
print(torch.stack([y, x]).mean(dim=0, keepdim=True))


class SubTensor(torch.Tensor):
    pass


class OtherTensor(torch.Tensor):
    pass


print(
    type(torch.add(SubTensor([0]), torch.tensor([1]))).__name__,
    type(torch.add(SubTensor([0]), 1)).__name__,
)
try:
    print(torch.add(SubTensor([0]), OtherTensor([1])))
except TypeError as e:
    print(e)


class SubTensor2(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if kwargs is None:
            kwargs = {}
        with torch._C.DisableTorchFunctionSubclass():
            ret = func(*args, **kwargs)
        return ret


print(type(SubTensor2([1.0]) + 1).__name__)
print(len(torch.overrides.get_overridable_functions().keys()) > 10)
print(
    torch.overrides.is_tensor_like(s),
    torch.overrides.is_tensor_method_or_property(torch.Tensor.add),
    torch.overrides.resolve_name(torch.Tensor.add),
    torch.overrides.resolve_name(torch.add),
)


class FunctionLog(TorchFunctionMode):
    def __torch_function__(self, func, types, args, kwargs=None):
        print(
            "Function Log:",
            torch.overrides.resolve_name(func),
            types,
            len(args),
            kwargs,
        )
        return func(*args, **(kwargs or {}))


def f():
    a = torch.rand(10, requires_grad=True)
    b = a * 2
    b.sum().backward()
    c = torch.nn.functional.relu(b, inplace=False)
    d = torch.cat([b, c])
    e = d.view(2, -1)
    e[0] = 3
    g = layer(torch.ones(1, 2))
    return g.max(dim=1)


torch.manual_seed(0)
layer = torch.nn.Linear(2, 2)
with FunctionLog():
    f()


class WithDevice(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in (torch.zeros, torch.ones, torch.empty):
            kwargs["dtype"] = torch.float64
        return func(*args, **kwargs)


with WithDevice():
    print(torch.zeros(2).dtype, torch.full((2,), 1.0).dtype)


class QTensor(torch.Tensor):
    "A tensor with attributes and constructor."

    @staticmethod
    def __new__(cls, data, names=None, *args, **kwargs):
        return torch.as_tensor(data).as_subclass(cls)

    def __init__(self, data, names=None):
        self.names_ = names

    def clone(self, *args, **kwargs):
        return QTensor(super().clone(*args, **kwargs), self.names_)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        out = super().__torch_function__(func, types, args, kwargs or {})
        src = next((a for a in args if isinstance(a, QTensor)), None)
        if isinstance(out, QTensor) and src is not None and not hasattr(out, "names_"):
            out.names_ = getattr(src, "names_", None)
        return out


q = QTensor([[1.0, 2.0], [3.0, 4.0]], names=("a", "b"))
print(
    q,
    (q + 1).names_,
    q.clone().names_,
    q.t().names_,
    q.sum(0),
    type(q.detach().numpy()),
)
try:
    print(copy.deepcopy(q).names_)
except RuntimeError as e:
    print(e)
print(pickle.loads(pickle.dumps(q)).names_)
p = torch.nn.Parameter(q)
print(type(p), isinstance(p, torch.nn.Parameter))
layer = torch.nn.Linear(2, 2, bias=False)
layer.weight = p
print(type(layer(torch.ones(1, 2))).__name__)


# Buffer/Parameter subclass
class MyParam(torch.nn.Parameter):
    def __new__(cls, data, tag="x"):
        t = super().__new__(cls, data)
        t.tag = tag
        return t


mp = MyParam(torch.ones(2), "hello")
print(mp, mp.tag, type(mp * 2), isinstance(mp, torch.nn.Parameter))


# wrapper with user-defined scalar ops
class Diag:
    def __init__(self, d):
        self.d = torch.as_tensor(d)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in (
            torch.matmul,
            torch.Tensor.matmul,
            torch.Tensor.__matmul__,
            torch.Tensor.__rmatmul__,
        ):
            a, b = args
            return (b if a is self else a) * self.d
        return NotImplemented


print(
    torch.matmul(torch.ones(2, 2), Diag([1.0, 2.0])),
    torch.ones(2, 2) @ Diag([3.0, 4.0]),
)
try:
    torch.ones(2) + Diag([1.0])
except TypeError as e:
    print(e)
