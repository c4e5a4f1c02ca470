"""What tensors tell of themselves, and conversions to Python, against PyTorch."""

from __future__ import annotations

import copy
import gc
import pickle

import numpy as np

from tests.oracle import attempt, case, evaluate


@case.lines(r"""
t=torch.ones(2,requires_grad=True)*2;torch.asarray(t)
bool(torch.ones(2))
bool(torch.ones(0))
bool(torch.ones(1,1))
int(torch.ones(2))
float(torch.ones(2))
complex(torch.ones(2))
int(torch.tensor(2.7))
float(torch.tensor(3))
complex(torch.tensor(3))
int(torch.tensor(1j))
float(torch.tensor(1j))
torch.tensor(2.5).__index__()
torch.tensor([2]).__index__()
torch.tensor(True).__index__()
torch.tensor([2,3]).__index__()
[1,2,3][torch.tensor(1)]
torch.ones(2).item()
torch.ones(0).item()
torch.tensor([[2]]).item()
torch.tensor(float('inf')).__int__()
len(torch.tensor(1))
len(torch.ones(2,3))
list(torch.tensor(1))
list(torch.ones(2))
1 in torch.ones(2)
torch.ones(2) in torch.ones(2)
'a' in torch.ones(2)
torch.ones(2,requires_grad=True).tolist()
torch.ones(2,requires_grad=True).__array__()
hash(torch.ones(2))>0
list(reversed(torch.arange(3)))
torch.arange(3).__reversed__()
torch.ones(2).requires_grad_(1)
torch.ones(2,dtype=torch.int64).requires_grad_()
torch.tensor([3+4j]).abs_()
x=torch.ones(2,dtype=torch.int64);x.requires_grad=True;x
x=torch.ones(2,requires_grad=True)*2;x.requires_grad=False;x
x=torch.ones(2,requires_grad=True)*2;x.requires_grad_(False)
x=torch.ones(2,requires_grad=True)*2;x.requires_grad_(True)
x=torch.ones(2);x.requires_grad='a';x
x=torch.ones(2);x.requires_grad_('a')
x=torch.ones(2);x.data=3;x
x=torch.ones(2);x.data=torch.ones(3);x
x=torch.ones(2,requires_grad=True);x.data=torch.ones(3,dtype=torch.float64);x
x=torch.ones(2,requires_grad=True);x.data=torch.ones(3,dtype=torch.int64);x
x=torch.ones(2);del x.data;x
x=torch.ones(2);x._version
x=torch.ones(2);x.foo=3;x.foo
torch.ones(2,3,4).T
torch.ones(3).T
torch.ones(3).mT
torch.ones(3).H
torch.ones(2,3,4).H
torch.ones(2,3).size('a')
torch.ones(2,3).size(5)
torch.ones(2,3).size(-3)
torch.ones(2,3).size(dim=1)
torch.ones(2,3).stride(5)
torch.ones(2,3).stride(1)
torch.ones(2,3).stride(-1)
torch.ones(()).size(0)
torch.ones(()).size(-1)
torch.ones(2).is_contiguous(memory_format=torch.channels_last)
torch.ones(2).is_contiguous(memory_format=torch.preserve_format)
torch.ones(2).untyped_storage().size()
x=torch.ones(2,3);x.is_set_to(x.view(2,3)), x.is_set_to(x.view(3,2))
torch.ones(0).data_ptr()
torch.is_nonzero(torch.ones(2))
torch.is_nonzero(torch.ones(1))
torch.ones(1).is_nonzero()
torch.ones(0).is_nonzero()
isinstance(torch.ones(2),torch.FloatTensor)
isinstance(torch.ones(2),torch.DoubleTensor)
import pickle;x=torch.arange(6).view(2,3).t();y=pickle.loads(pickle.dumps(x));(y,y.stride())
torch.ones(2).get_device()
torch.ones(2).is_cuda, torch.ones(2).is_cpu, torch.ones(2).is_meta, torch.ones(2).is_sparse, torch.ones(2).is_quantized,torch.ones(2).is_mps,torch.ones(2).is_xla
torch.ones(2).layout
torch.ones(2).output_nr
torch.ones(2).itemsize, torch.ones(2).nbytes
f"{torch.tensor(3.14159):.2f}"
f"{torch.ones(2):.2f}"
f"{torch.ones(2)}"
f"{torch.tensor(3,requires_grad=False):5d}"
f"{torch.ones(1):.2f}"
""")  # noqa: E501
def facts(torch, line):
    return evaluate(torch, line, np=np, copy=copy, pickle=pickle)


@case(raises=AttributeError).lines(r"""
x=torch.ones(2);x.shape=(1,2);x
x=torch.ones(2);x.dtype=torch.int64;x
torch.ones(2).bar
""")
def attributes(torch, line):
    return evaluate(torch, line, np=np, copy=copy, pickle=pickle)


@case
def data_ptr(torch):
    x = torch.arange(6.0).view(2, 3)
    yield x.data_ptr() == x[0].data_ptr(), x[1].data_ptr() - x.data_ptr()
    yield x.untyped_storage().data_ptr() == x[1].untyped_storage().data_ptr()
    yield x.storage_offset(), x[1].storage_offset()
    yield x.detach().data_ptr() == x.data_ptr(), x.clone().data_ptr() == x.data_ptr()
    yield x.untyped_storage().nbytes(), x[1].untyped_storage().tolist()[:8]
    yield list(x.T.untyped_storage())[:8], x.is_set_to(x.view(2, 3)), x.is_set_to(x[0])
    y = x * 2
    before = y.data_ptr()
    y.add_(1)
    yield y.data_ptr() == before, y[1:].data_ptr() - before, torch.ones(0).data_ptr()


@case
def defaults(torch):
    torch.set_default_dtype(torch.float64)
    yield torch.ones(2), torch.tensor(1.0), torch.tensor(1).float() / 2
    yield torch.tensor([1]) / 2
    torch.set_default_dtype(torch.float32)
    yield torch.tensor([1]) / 2
    with torch.device("cpu"):
        yield torch.ones(1).device
    yield torch.get_default_device()
    yield torch.Size([2, 3]) + torch.Size([4]), torch.Size([2, 3]).numel()


@case
def printing(torch):
    torch.set_printoptions(precision=2)
    print(torch.tensor(3.14159))
    torch.set_printoptions(profile="default")
    print(torch.arange(2000.0))
    x = torch.ones(2, requires_grad=True)
    print(x, x * 2, (x * 2).sum(), f"{(x * 2).sum():.3f}", x.to(torch.float64))
    print(torch.ones(2, 2, dtype=torch.bfloat16), torch.zeros(0, 3), torch.tensor(True))


@case
def leaf_after_use(torch):
    y = torch.ones(2) * 2
    z = y * 3
    y.requires_grad = True
    (y * 3).sum().backward()
    yield y.grad, y.is_leaf, z.requires_grad
    y.requires_grad_(False)
    yield (y * 2).requires_grad, y
    w = torch.ones(2, requires_grad=True)
    yield w.requires_grad_().is_leaf, w.detach().requires_grad_()


@case
def subclasses(torch):
    class Kind(torch.Tensor):
        pass

    x = torch.ones(2)
    m = x.as_subclass(Kind)
    yield type(m).__name__, isinstance(m, torch.Tensor), str(m)
    x.add_(1)
    yield m.tolist(), type(Kind([1, 2])).__name__
    p = torch.Tensor._make_subclass(Kind, x, True)
    yield type(p).__name__, p.requires_grad, p.is_leaf, p.data_ptr() == x.data_ptr()


@case.lines("""
    Size([2.5])
    Size(["a"])
    Size([True]), Size(torch.tensor([1, 2])), Size([torch.tensor(2)]), Size(range(3))
    Size(), Size().numel(), Size((1, -2))
    Size([2, 3])[:1], Size([2, 3])[::-1], Size([2, 3])[-1]
    Size([2, 3]) + (1,), (1,) + Size([2, 3]), Size([2, 3]) * 2, Size([2, 3]).numel()
    Size([2, 3]) + [1]
    Size([2, 3]) + None
    type(Size([2, 3])[:1]).__name__, type((1,) + Size([2, 3])).__name__
""")
def sizes(torch, line):
    return eval(line, {"torch": torch, "Size": torch.Size})


@case
def own_attributes(torch):
    def own(tensor):
        return dict(tensor.__dict__)

    p = torch.nn.Parameter(torch.ones(2))
    p.detach()
    (p[1:] * 2).sum().backward()
    yield own(p), dict(vars(p)), own(torch.ones(2))
    p.tag = [1]
    yield own(p), isinstance(p.__dict__, dict), own(copy.deepcopy(p))
    yield own(pickle.loads(pickle.dumps(p))), type(copy.copy(p.__dict__) | {})
    x = torch.arange(2.0)
    x[1:].add_(1)
    x.__dict__ = copy.copy(p.__dict__)
    yield x, x.tag is p.tag, attempt(lambda: setattr(x, "__dict__", 3))
    d = x.__dict__
    d["a"] = 1
    d.update(b=2, c=3)
    yield x.a, x.b, sorted(d), d.setdefault("a", 5), d.setdefault("e", 6), x.e
    del d["a"]
    yield hasattr(x, "a"), d.pop("b"), d.pop("z", 7), hasattr(x, "b"), d.popitem()
    yield sorted(x.__dict__), attempt(lambda: d.pop("z")), attempt(lambda: d["z"])
    d |= {"f": 1}
    yield x.f
    x.late = 1
    d.clear()
    yield own(x), x + 1, attempt(d.popitem)
    y = torch.ones(1)
    y.own = 1
    torch.utils.swap_tensors(x, y)
    yield x, y, own(x), own(y)

    class Kept(torch.Tensor):
        pass

    t = torch.ones(2).as_subclass(Kept)
    t.foo = 3
    s = (torch.arange(2.0, requires_grad=True) * 2).as_subclass(Kept)
    s.__dict__ = t.__dict__
    yield s.foo, s.tolist(), s.requires_grad
    del s.__dict__
    yield own(s), s.tolist()


@case
def subclasses_with_slots(torch):
    class One(torch.Tensor):
        __slots__ = ("first",)

    class Two(One):
        __slots__ = ("second",)

    x = Two(torch.arange(3.0))
    x.first, x.second, x.note = 1, "b", "c"
    yield (
        type(x).__name__,
        x.tolist(),
        x.first,
        x.second,
        x.note,
        hasattr(x * 2, "first"),
    )
    x += 1
    yield type(x * 2).__name__, x.sum().item(), One([1.0]).tolist(), One(2, 3).shape
    leaf = torch.ones(3, requires_grad=True)
    y = (leaf * 3).as_subclass(Two)
    (y * 2).sum().backward()
    yield leaf.grad, y.is_leaf, y.grad_fn.name()
    base = torch.zeros(3)
    view = base.as_subclass(One)
    view.add_(1)
    base.mul_(5)
    yield view.tolist(), base, view._base is base
    lost = torch.ones(2) * 2
    kept = lost.as_subclass(Two)
    del lost
    gc.collect()
    yield (kept + 1).tolist(), type(torch.nn.Parameter(kept.detach())).__name__
    a, b = torch.ones(2).as_subclass(Two), torch.zeros(3).as_subclass(Two)
    a.first, b.second = 1, 2
    torch.utils.swap_tensors(a, b)
    yield a.second, b.first, hasattr(a, "first"), hasattr(b, "second"), a.shape
    yield attempt(torch.utils.swap_tensors, a, torch.ones(1))
    yield attempt(torch.utils.swap_tensors, a, view)


@case.lines("""
[3] + s
(3,) + s, type((3,) + s).__name__
range(2) + s
UserList([3]) + s
"a" + s
s + [3]
""")
def sizes_added(torch, line):
    from collections import UserList

    return eval(line, {"s": torch.Size([1, 2]), "UserList": UserList})


@case.lines("""
Kind(torch.tensor([5])), Kind(torch.tensor(3)), Kind(torch.ones(2, dtype=torch.float64))
Kind(Kind(torch.tensor([True])))
torch.Tensor(other=torch.tensor([5])), torch.LongTensor(other=torch.tensor([5]))
torch.FloatTensor(torch.tensor([5]))
torch.Tensor(torch.ones(1), device="cpu")
torch.FloatTensor(torch.ones(1), device=None)
Kind(torch.ones(1), device="meta")
torch.ones(1).new(torch.ones(2), device="cpu")
""")
def made_of_tensors(torch, line):
    class Kind(torch.Tensor):
        pass

    found = eval(line, {"torch": torch, "Kind": Kind})
    found = found if isinstance(found, tuple) else (found,)
    return [(type(x).__name__, x.dtype, x.tolist()) for x in found]


@case
def gradients_of_what_overrides(torch):
    class Alike:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, [[type(x).__name__ for x in each] for each in args]

    x, y = Alike(), torch.ones(2, requires_grad=True)
    yield torch.autograd.grad(x, x), torch.autograd.grad(x, y)
    yield torch.autograd.grad([x], [y, x]), torch.autograd.grad(y * 2, x)
    torch.autograd.backward(x)
