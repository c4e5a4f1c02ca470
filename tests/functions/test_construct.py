"""Tensors from data, compared with PyTorch."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import torchshim
from tests.oracle import attempt, case, evaluate
from torchshim import _errors


@case.lines(r"""
torch.tensor([[1,2],[3]])
torch.tensor([[1,2],3])
torch.tensor([1,[2,3]])
torch.tensor([0, [0], 1], dtype=torch.bool)
torch.tensor([True, [True]])
torch.tensor([0, 'a'], dtype=torch.bool)
torch.tensor([1.0, None], dtype=torch.bool)
torch.tensor([0, 0.5, 0j, np.int64(3), np.float64(0)], dtype=torch.bool)
torch.tensor([0, np.float32(0)], dtype=torch.bool)
torch.tensor([0, np.array(1.0)], dtype=torch.bool)
torch.tensor([1.0], requires_grad=None)
torch.tensor([1.0], pin_memory=None)
torch.frombuffer(bytearray(8), dtype=torch.float32, requires_grad=None)
torch.tensor('a')
torch.tensor(['a'])
torch.tensor([['a','b']])
torch.tensor(None)
torch.tensor([None])
torch.tensor({})
torch.tensor([1,None])
torch.tensor([1,'a'])
torch.tensor([])
torch.tensor([[],[]])
torch.tensor([[]]).shape
torch.tensor([True,2])
torch.tensor([1,2.5])
torch.tensor([True,2.5])
torch.tensor([1,1j])
torch.tensor([True,False])
torch.tensor(3)
torch.tensor(True)
torch.tensor(1+2j)
torch.tensor(2**63)
torch.tensor(2**64)
torch.tensor(-2**63)
torch.tensor([2**63])
torch.tensor([0, 2**63], dtype=torch.uint64), torch.tensor([0, 2**63], dtype=torch.bool)
torch.tensor([0, 2**63])
torch.tensor([0, 2**64], dtype=torch.uint64)
torch.tensor([-1, 2**63], dtype=torch.uint64)
torch.tensor([1.5], dtype=torch.uint64)
torch.tensor(2**64 - 1, dtype=torch.float64)
torch.tensor([2**63, 1.5])
torch.tensor(300,dtype=torch.uint8)
torch.tensor([300],dtype=torch.int8)
torch.tensor(-1,dtype=torch.uint8)
torch.tensor(2.5,dtype=torch.int64)
torch.tensor([2.5],dtype=torch.int32)
torch.tensor(1j,dtype=torch.float32)
torch.tensor(1e300)
torch.tensor([1e300],dtype=torch.float16)
torch.tensor(float('nan'),dtype=torch.int64)
torch.tensor(float('inf'),dtype=torch.int64)
torch.tensor(torch.tensor([1.,2.]))
torch.tensor(torch.tensor([1.,2.],requires_grad=True))
torch.tensor([torch.tensor(1.),torch.tensor(2)])
torch.tensor([torch.tensor(1),torch.tensor(2)])
torch.tensor([torch.tensor([1.]),torch.tensor([2.])])
torch.tensor([torch.tensor([1.,2.]),torch.tensor([2.,3.])])
torch.tensor([torch.tensor(1.,requires_grad=True)])
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
torch.tensor(range(3))
torch.tensor((1,2))
torch.tensor(x for x in [1,2])
torch.tensor({1,2})
torch.tensor("abc", dtype=torch.float32)
torch.tensor(b"abc")
torch.tensor([1],dtype="float")
torch.tensor([1],dtype=float)
torch.tensor([1],requires_grad=True)
torch.tensor([1.],requires_grad=True)
torch.tensor([1.],requires_grad=1)
torch.tensor()
torch.tensor(1,2)
torch.tensor(data=[1])
torch.tensor([1],foo=2)
torch.as_tensor([1,2])
torch.as_tensor(3.5)
t=torch.ones(2);torch.as_tensor(t) is t
t=torch.ones(2);torch.as_tensor(t,dtype=torch.float64)
torch.as_tensor(np.array([1.,2.]))
torch.as_tensor(np.array([1.,2.]),dtype=torch.float32)
torch.as_tensor('a')
torch.asarray([1,2])
t=torch.ones(2);torch.asarray(t) is t
t=torch.ones(2);torch.asarray(t,copy=True) is t
t=torch.ones(2);torch.asarray(t,dtype=torch.int64,copy=False)
torch.asarray(b"\\x01\\x02",dtype=torch.uint8)
torch.asarray(np.array([1.,2.]))
torch.asarray([1,2],copy=False)
t=torch.ones(2,requires_grad=True)*2;torch.asarray(t,requires_grad=True)
torch.asarray(3,dtype=torch.float64)
torch.from_numpy([1])
torch.from_numpy(np.array([1,2],dtype=np.uint16))
torch.from_numpy(np.array(['a']))
torch.from_numpy(np.array([1,2,3])[::-1])
torch.from_numpy(np.float32(3))
torch.from_numpy(np.array(3.))
torch.from_numpy(np.arange(6).reshape(2,3).T).stride()
torch.from_numpy(np.arange(6)[::2]).stride()
a=np.arange(3);a.flags.writeable=False;torch.from_numpy(a)
torch.frombuffer(bytearray(b"\\x01\\x02\\x03\\x04"),dtype=torch.uint8)
torch.frombuffer(b"\\x01\\x02\\x03\\x04",dtype=torch.uint8)
torch.frombuffer(bytearray(8),dtype=torch.int32,count=1,offset=4)
torch.frombuffer(bytearray(8),dtype=torch.int32,count=3)
torch.frombuffer(bytearray(0),dtype=torch.int32)
torch.frombuffer(bytearray(7),dtype=torch.int32)
torch.frombuffer(bytearray(8),dtype=torch.int32,offset=9)
torch.frombuffer(bytearray(8),dtype=torch.int32,count=0)
torch.frombuffer(bytearray(8),dtype=torch.int32,offset=8)
torch.frombuffer(bytearray(8),dtype=torch.int32,offset=6)
torch.frombuffer(3,dtype=torch.int32)
torch.frombuffer(bytearray(8))
torch.ones(2,3).new_tensor([1,2])
torch.ones(2,3,dtype=torch.int64).new_tensor([1.5,2])
torch.ones(2).new(2,3).shape
torch.ones(2).new([1,2])
torch.scalar_tensor(3)
torch.scalar_tensor(3,dtype=torch.int64)
torch.scalar_tensor('a')
torch.FloatTensor(2,3).shape
torch.FloatTensor([1,2])
torch.LongTensor([1,2])
torch.LongTensor([1.5,2])
torch.LongTensor(2.5)
torch.FloatTensor(3).shape
torch.FloatTensor()
torch.FloatTensor(torch.ones(2))
torch.FloatTensor(torch.ones(2).long())
torch.FloatTensor(np.ones(2))
torch.FloatTensor(np.ones(2,dtype=np.float32))
torch.FloatTensor((2,3))
torch.FloatTensor(torch.Size([2,3])).shape
torch.FloatTensor('a')
torch.BoolTensor([True,0])
torch.Tensor(2,3).shape
torch.Tensor([1,2])
torch.Tensor()
torch.Tensor(3.5)
torch.Tensor(torch.ones(2,dtype=torch.int64))
torch.Tensor(2,dtype=torch.float64)
torch.Tensor([1],device='cpu')
torch.Tensor('a')
torch.Tensor(None)
torch.FloatTensor
torch.FloatTensor.dtype
type(torch.FloatTensor)
issubclass(torch.FloatTensor,torch.Tensor)
""")
def construct(torch, line):
    return evaluate(torch, line, np=np, copy=copy, pickle=pickle)


class _Sequence:
    def __init__(self, items, error=None):
        self.items, self.error = items, error

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        if self.error is not None:
            raise self.error
        return self.items[index]


@case.over(items=[[], [1.0, 2.0], [[1, 2]]], error=[None, TypeError, KeyError])
def sequences_of_other_classes(torch, items, error):
    made = _Sequence(items, error)
    yield attempt(torch.tensor, made)
    yield attempt(torch.as_tensor, [made])


@case.over(
    {}, {"copy": False}, {"copy": True}, {"dtype": "float64"}, {"requires_grad": True}
)
def capsules_and_scalars_of_numpy(torch, options):
    import numpy as np

    if "dtype" in options:
        options = {"dtype": torch.float64}
    x = torch.arange(4.0)
    capsule = torch.utils.dlpack.to_dlpack(x)
    made = torch.asarray(capsule, **options)
    yield made, made.data_ptr() == x.data_ptr()
    yield attempt(torch.asarray, capsule)
    yield attempt(lambda: torch.asarray(np.float64(0.5), **options))


@case
def instances_of_subclasses_by_tensors(torch):
    class Labelled(torch.Tensor):
        pass

    for dtype in (torch.int64, torch.bool, torch.float64, torch.float32):
        x = torch.ones(2, dtype=dtype)
        made = Labelled(x)
        yield made, type(made).__name__, made.data_ptr() == x.data_ptr()
        yield attempt(torch.FloatTensor, x)


@case
def classes_of_old_constructors(torch):
    found = torch._tensor_classes
    yield {torch.FloatTensor, torch.cuda.IntTensor, torch.sparse.HalfTensor} <= found
    for kind in sorted(found, key=str):
        if "cuda.sparse" in str(kind):
            continue
        yield str(kind), kind.dtype, kind.is_cuda, kind.is_sparse, kind.layout
        if not kind.is_cuda and not kind.is_sparse:
            yield kind(2, 2).fill_(1).type(), kind.__name__


def test_a_tensor_that_requires_grad_is_warned_of_once_however_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_errors, "_warned", set())
    monkeypatch.setattr(_errors, "warn_always", [False])
    x = torchshim.tensor(2.0, requires_grad=True)
    with pytest.warns(UserWarning, match="to a scalar") as told:
        assert float(x) == torchshim.tensor([x]).item() == int(x)
    assert len(told) == 1


@case
def lists_that_contain_themselves(torch):
    tail = [0]
    tail.append(tail)
    loop = []
    loop.append(loop)
    for data in tail, [[1, 2], tail], loop:
        yield attempt(torch.tensor, data)
        yield attempt(torch.as_tensor, data)
        yield attempt(torch.asarray, data)
        yield attempt(torch.FloatTensor, data)
    yield attempt(lambda: torch.tensor([None, 1.0], dtype=torch.float32))
    deep = [1]
    for _ in range(40):
        deep = [deep]
    yield torch.tensor(deep).shape


@case
def arrays_that_are_shared_or_copied(torch):
    for make in (
        torch.Tensor,
        torch.FloatTensor,
        torch.DoubleTensor,
        torch.ones(1).new,
        torch.asarray,
        torch.tensor,
        torch.ones(1).new_tensor,
    ):
        for array in (
            np.float32([[1, 2, 3], [4, 5, 6]]),
            np.ones((2, 3, 4)).transpose(2, 0, 1),
            np.ones((2, 3, 4), "f4").transpose(0, 2, 1)[:, ::2],
            np.asfortranarray(np.ones((2, 3), "i4")),
            np.array(3.0),
        ):
            made = make(array)
            yield made, made.stride()
            made.add_(1)
            yield array.tolist()
            array += 1
            yield made
        yield attempt(make, np.ones(3)[::-1])
        yield attempt(make, np.array(["a"]))
