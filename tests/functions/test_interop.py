"""Tensors for NumPy, DLPack, pickle and copy, compared with PyTorch."""

from __future__ import annotations

import copy
import pickle

import numpy as np

from tests.oracle import attempt, case, evaluate


@case.lines(r"""
torch.tensor([np.array([1,2]),np.array([3,4])])
torch.tensor([np.float32(1),np.float32(2)])
torch.tensor(np.float64(1.5))
torch.tensor(np.float32(1.5))
torch.tensor(np.int32(1))
torch.tensor([np.float64(1.5)])
torch.tensor([np.int32(1)])
torch.tensor(np.array([1,2],dtype=np.int16))
torch.tensor(np.array(['a']))
torch.tensor(np.array([1,2])[::-1])
torch.as_tensor(np.array([1.,2.]))
torch.as_tensor(np.array([1.,2.]),dtype=torch.float32)
torch.asarray(np.array([1.,2.]))
torch.from_numpy([1])
torch.from_numpy(np.array([1,2],dtype=np.uint16))
torch.from_numpy(np.array(['a']))
torch.from_numpy(np.array([1,2,3])[::-1])
torch.from_numpy(np.float32(3))
torch.from_numpy(np.array(3.))
torch.from_numpy(np.arange(6).reshape(2,3).T).stride()
torch.from_numpy(np.arange(6)[::2]).stride()
a=np.arange(3);a.flags.writeable=False;torch.from_numpy(a)
torch.ones(2,requires_grad=True).numpy()
(torch.ones(2,requires_grad=True)*2).numpy()
torch.ones(2,dtype=torch.bfloat16).numpy()
torch.ones(2,requires_grad=True).numpy(force=True)
np.asarray(torch.ones(2))
np.asarray(torch.ones(2,requires_grad=True))
np.array(torch.ones(2),dtype=np.float64)
np.array(torch.ones(2),copy=False)
np.sin(torch.ones(2))
torch.ones(2)+np.ones(2)
np.ones(2)+torch.ones(2)
[torch.storage._reset_warn_typed_storage_removal(), torch.ones(2).storage()]
copy.deepcopy(torch.ones(2,requires_grad=True)*2)
x=torch.ones(2);x.grad=torch.ones(2);copy.deepcopy(x).grad
x=torch.ones(2);y=[x,x.view(2,1)];z=copy.deepcopy(y);z[0].add_(1);z[1]
x=torch.ones(2);y=copy.copy(x);y.add_(1);x
x=torch.arange(6).view(2,3).t();y=pickle.loads(pickle.dumps(x));(y,y.stride())
x=torch.ones(2,requires_grad=True);pickle.loads(pickle.dumps(x))
x=torch.ones(2,requires_grad=True)*2;pickle.loads(pickle.dumps(x))
x=torch.ones(2);a,b=pickle.loads(pickle.dumps([x,x[:1]]));a.add_(1);b
torch.ones(2).__dlpack_device__()
torch.ones(2,requires_grad=True).__dlpack__()
torch.from_dlpack(np.ones(2))
""")
def interop(torch, line):
    return evaluate(torch, line, np=np, copy=copy, pickle=pickle)


@case
def shared_by_from_numpy(torch):
    a = np.zeros(4, np.float32)
    t = torch.from_numpy(a)
    a[0] = 1
    yield t
    t[1] = 2
    yield a
    t.add_(1)
    yield a
    y = t * 2
    a[:] = 0
    yield y, t, t * 2
    v = t[1:3]
    a[1] = 7
    yield v, v * 1
    v.mul_(3)
    yield a, np.shares_memory(t.numpy(), a), t.data_ptr() == a.ctypes.data
    s = np.arange(10.0)
    t = torch.from_numpy(s[::2])
    t.mul_(2)
    yield s, t, t.stride(), t[1:].numpy()
    del s
    t.add_(1)
    yield t, t[1:] * 2


@case
def shared_by_numpy(torch):
    t = torch.ones(3)
    n = t.numpy()
    n[0] = 5
    yield t
    t[1] = 6
    yield n
    t.zero_()
    yield n
    m = t.numpy()
    m[2] = 9
    yield n, t
    u = torch.arange(6.0).view(2, 3)
    n = u.t().numpy()
    n[0, 1] = 100
    yield u, n.strides, n.flags.writeable
    x = torch.ones(3) * 2
    y = x + 1
    n = x.numpy()
    n[:] = 0
    yield y, x, x + y


@case
def shared_by_parameters(torch):
    w = torch.ones(3, requires_grad=True)
    n = w.detach().numpy()
    n[:] = [1, 2, 3]
    (w * w).sum().backward()
    yield w, w.grad
    g = w.grad.numpy()
    for _ in range(3):
        (w * 2).sum().backward()
    yield g, w.grad
    with torch.no_grad():
        w -= 0.5
    yield n, w
    with torch.no_grad():
        yield (w * 1).numpy(), w.numpy()


@case
def optimizers_on_shared_memory(torch):
    """All parameters in one update, two of them on NumPy's memory."""
    w, b = np.ones((2, 3), np.float32), np.ones(3, np.float32)
    p, q = (torch.nn.Parameter(torch.from_numpy(a)) for a in (w, b))
    r = torch.nn.Parameter(torch.ones(3))
    found = []
    for make in (torch.optim.Adam, torch.optim.SGD):
        optimizer = make([p, q, r], lr=0.1)
        for _ in range(2):
            (p * q * r).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        found.append((w.copy(), b.copy(), r.detach().clone()))
    with torch.no_grad():
        torch._foreach_mul_([p, q], 2.0)
    return found, w, b, p, q


@case
def buffers(torch):
    held = bytearray(8)
    f = torch.frombuffer(held, dtype=torch.float32)
    f[0] = 1
    yield f, bytes(held)
    yield torch.from_dlpack(torch.ones(2)), np.from_dlpack(torch.ones(2))
    a = np.ones(2)
    t = torch.from_dlpack(a)
    t[0] = 5
    yield a, t
    yield np.array([torch.tensor(1.0), torch.tensor(2.0)])
    yield np.float64(2) * torch.ones(2)
    yield torch.ones(2) * np.float64(2), np.float32(2) + torch.ones(1)
    z = torch.zeros(4)
    yield z.set_(torch.ones(2)), z.shape


@case(warnings=False).lines(
    """
    x * z, z.dtype
    i + z
    x - z
    x**z
    z * x
    torch.mul(x, z)
    x.add(z)
    torch.add(x, x, alpha=z)
    torch.where(x > 0, z, x)
    torch.clamp(x, max=z)
    torch.pow(z, x)
    x == z
    x < z
    torch.full((2,), z)
    """
)
def arrays_of_no_dimension_are_no_numbers(torch, line):
    x, i = torch.ones(2), torch.ones(2, dtype=torch.int32)
    return evaluate(torch, line, x=x, i=i, z=np.array(2.0))


@case
def read_only(torch):
    a = np.arange(3.0)
    a.flags.writeable = False
    t = torch.from_numpy(a)
    t[0] = 5
    yield t, a
    t.mul_(2)
    yield t * 1, a, t[1:].numpy()


@case
def views_of_shared_memory(torch):
    x = torch.arange(6.0).reshape(2, 3)
    n = x[1].numpy()
    n[:] = 7
    yield x
    x[1, 0] = 1
    yield n, (x * x).sum()
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    t, b = torch.as_tensor(a), torch.as_tensor(a, dtype=torch.float64)
    a[0, 0] = 50
    yield t, b
    u = torch.from_numpy(a).T
    u[0, 1] = -1
    v = torch.from_numpy(a)[:, 1]
    v += 1
    yield a
    w = torch.from_numpy(a)
    torch.add(w, 1, out=w)
    yield a
    w[0] = torch.tensor([1.0, 2.0, 3.0])
    w[w > 1] = 0
    yield a, w.uniform_(0, 0), a
    w.data.fill_(3)
    w.detach().add_(1)
    yield a, w
    t = torch.from_numpy(np.ones(3)).requires_grad_()
    a = t.detach().numpy()
    first = (t * t).sum()
    a[:] = 3
    second = (t * t).sum()
    second.backward()
    yield t.grad, first, second
    with torch.no_grad():
        t -= 1
    yield a


@case.over("bfloat16", "float16", "float8_e4m3fn", "complex64", "bool", "uint16")
def bytes_as_another_type(torch, name):
    """As checkpoints are read: a view of memory that knows of bytes alone."""
    kind = getattr(torch, name)
    buffer = bytearray(range(48, 64))
    t = torch.frombuffer(buffer, dtype=torch.uint8, offset=8).view(kind)
    yield t, t[:1].clone(), t.view(torch.uint8)
    t.fill_(1)
    yield bytes(buffer), t
    t[-1:] = 0
    yield bytes(buffer), torch.equal(t.view(torch.uint8), t.clone().view(torch.uint8))
    whole = torch.frombuffer(buffer, dtype=torch.uint8).view(2, -1)[1].view(kind)
    yield whole


@case
def copies(torch):
    x = torch.arange(6.0).view(2, 3)
    y = copy.copy(x)
    y.add_(1)
    yield x
    z = copy.deepcopy(x)
    z.add_(1)
    yield x, z
    a, b = copy.deepcopy([x, x[0]])
    a.mul_(0)
    yield b, b._is_view(), x[0]._is_view(), x[0]._base is x
    w = torch.ones(2, requires_grad=True)
    w.grad = torch.ones(2)
    w.foo = 3
    v = copy.deepcopy(w)
    yield v, v.grad, v.foo, v.is_leaf, v.grad is w.grad
    memo = copy.deepcopy({"a": w, "b": w})
    yield memo["a"] is memo["b"]


@case
def pickles(torch):
    x = torch.arange(6.0).view(2, 3)
    u = pickle.loads(pickle.dumps(x.t()))
    yield u, u.stride()
    many = {
        "a": torch.tensor(3),
        "b": torch.ones(2, dtype=torch.bfloat16),
        "c": torch.ones(0, 2),
        "d": torch.float32,
        "e": torch.Size([2, 3]),
        "f": torch.device("cpu"),
        "g": x[1],
        "h": x[:, ::2],
    }
    yield pickle.loads(pickle.dumps(many))
    w = torch.ones(2)
    w.foo = "bar"
    yield pickle.loads(pickle.dumps(w)).foo


@case
def numpy_writes_after_a_look(torch):
    """What looks at a tensor's node does not keep its value."""
    looks = [
        lambda t, base: t.grad_fn,
        lambda t, base: t.output_nr,
        lambda t, base: t.register_hook(lambda grad: None),
        lambda t, base: t.retain_grad(),
        lambda t, base: t.detach(),
        lambda t, base: torch.autograd.grad(base.sum(), [t], allow_unused=True),
        lambda t, base: t.backward(retain_graph=True),
    ]
    for look in looks:
        for read in (False, True):
            x = torch.tensor([0.5, 0.75, 1.0], requires_grad=True)
            base = x.relu()
            _, part, _ = base.split(1)
            array = part.detach().numpy()
            if read:
                print(part.item())
            look(part, base)
            array[...] = 0.25
            yield -part, base * 1


@case
def equal_to_an_array(torch):
    a, n = torch.tensor([1, 2]), np.array([1, 2])
    yield a == n, n == a, a.float() == np.array([1.0, 5.0]), a == np.array(1)
    yield a != n, a.__ne__(n), a == [1, 2], attempt(lambda: a == np.array([1, 2, 3]))
    yield attempt(lambda: a < n)


@case
def numpy_numbers_assigned(torch):
    for value in (
        np.int64(7),
        np.uint8(7),
        np.float64(7.5),
        np.float32(7),
        np.bool_(1),
    ):
        for index in (0, slice(None), [0], torch.tensor([True, False])):
            x = torch.tensor([1, 2])
            yield attempt(x.__setitem__, index, value), x


@case
def refused_by_dlpack(torch):
    x = torch.ones(2)
    yield attempt(torch.from_dlpack, x.clone().requires_grad_())
    yield attempt(torch.from_dlpack, 3)
    yield attempt(lambda: x.__dlpack__(stream=1))
    yield attempt(lambda: x.__dlpack__(stream="a"))
    yield attempt(x.to("meta").__dlpack__)


@case
def capsules(torch):
    x = torch.ones(2)
    capsule = torch.utils.dlpack.to_dlpack(x)
    y = torch.utils.dlpack.from_dlpack(capsule)
    y[0] = 5.0
    yield x, y, attempt(torch.from_dlpack, capsule)


@case
def numpy_numbers_as_tensors(torch):
    yield torch.asarray(np.float32(3)), torch.asarray(np.int8(3), dtype=torch.float32)


class _Speaking:
    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


@case
def dlpack_of_bfloat16(torch):
    x = torch.arange(5).bfloat16()
    yield torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    for y in (x, x[::2], x[:, None], x[:0], x[2]):
        z = torch.from_dlpack(_Speaking(y))
        yield z, z.dtype, (z + 1).sum()


class _List(_Speaking):
    """A sequence that speaks DLPack."""

    def __len__(self):
        return len(self.tensor)

    def __getitem__(self, index):
        return self.tensor[index].item()


@case
def tensors_of_what_speaks_dlpack(torch):
    for kind in (_Speaking, _List):
        for make in (torch.tensor, torch.as_tensor, torch.asarray):
            x = torch.arange(3.0)
            made = make(kind(x))
            made[0] = 7
            yield made, x, make(kind(x), dtype=torch.int32)
        yield torch.tensor(kind(x), requires_grad=True), torch.asarray(x, copy=True)
        yield torch.ones(1, dtype=torch.int64).new_tensor(kind(x))
        yield attempt(torch.tensor, [kind(x), kind(x)]), attempt(torch.Tensor, kind(x))
    for make in (torch.from_dlpack, torch.utils.dlpack.from_dlpack, torch.asarray):
        capsule = x.__dlpack__(max_version=(1, 0))
        yield make(capsule), attempt(torch.from_dlpack, capsule)


@case
def dlpack_to_a_device(torch):
    for source in (torch.arange(3.0), np.arange(3.0)):
        for device in (0, 1.5, "cpu", torch.device("cpu"), "nope", "meta"):
            yield attempt(torch.from_dlpack, source, device=device)
        yield attempt(torch.from_dlpack, source, device="cuda", copy=False)
        yield torch.from_dlpack(source, device="cpu", copy=False)
    for options in ({"device": "cpu"}, {"copy": True}, {"copy": False}, {}):
        capsule = torch.utils.dlpack.to_dlpack(torch.ones(2))
        yield attempt(torch.from_dlpack, capsule, **options)
