"""Tensors from sizes and numbers, compared with PyTorch."""

from __future__ import annotations

import copy
import pickle

import numpy as np

from tests.oracle import attempt, case, evaluate


@case.lines(r"""
torch.zeros("a")
torch.zeros(2.5)
torch.zeros(2,2.5)
torch.zeros((2,2.5))
torch.zeros([2,'a'])
torch.zeros(-1)
torch.zeros(2,-1)
torch.zeros()
torch.zeros(())
torch.zeros(2,dtype=3)
torch.zeros(2,dtype='float32')
torch.zeros(2,device='foo')
torch.zeros(2,device=3.5)
torch.zeros(2,requires_grad=True,dtype=torch.int64)
torch.zeros(2,foo=1)
torch.zeros(2,3,out=torch.empty(2,3))
torch.zeros(2,3,out=torch.empty(5))
torch.zeros(2,3,out=torch.empty(5),dtype=torch.int64)
torch.zeros(2,3,out=torch.empty(0,dtype=torch.int64))
torch.zeros(torch.tensor(2),torch.tensor(3))
torch.zeros(np.int64(2),3)
torch.zeros(torch.tensor([2,3]))
torch.full((2,),True)
torch.full((2,),3)
torch.full((2,),3.)
torch.full((2,),1j)
torch.full((2,),torch.tensor(3))
torch.full((2,),torch.tensor(3.,dtype=torch.float64))
torch.full((2,),torch.tensor([3.]))
torch.full(2,3)
torch.full((2,),3,dtype=torch.bool)
torch.full((2,),300,dtype=torch.uint8)
torch.full((2,),-1,dtype=torch.uint8)
torch.full((2,),2.5,dtype=torch.int64)
torch.full((2,),1j,dtype=torch.float32)
torch.full((2,),1e300)
torch.full((2,),'a')
torch.full((2,))
torch.empty_strided((2,3),(1,2)).stride()
torch.empty_strided((2,3),(1,)).stride()
torch.empty_strided((2,3),(-1,1)).stride()
torch.zeros_like(3)
torch.zeros_like(torch.ones(2,3).t()).stride()
torch.zeros_like(torch.ones(2,1).expand(2,3)).stride()
torch.zeros_like(torch.ones(2,3,4).permute(2,0,1)).stride()
torch.zeros_like(torch.ones(2,3,4)[:,::2]).stride()
torch.zeros_like(torch.ones(2,3,4,4),memory_format=torch.channels_last).stride()
torch.zeros_like(torch.ones(2,3),memory_format=torch.channels_last).stride()
torch.empty(1,2,3,4,memory_format=torch.channels_last,pin_memory=True)
torch.empty(1,2,3,4,memory_format=torch.contiguous_format).stride()
torch.empty(1,2,3,4,memory_format=torch.channels_last,out=torch.ones(2))
torch.empty(2,memory_format=torch.contiguous_format,out=torch.ones(2))
torch.empty(2,memory_format=torch.preserve_format)
torch.ones(2,3).new_zeros(2)
torch.ones(2,3,dtype=torch.int64).new_full((2,),2.5)
torch.ones(2).new_empty((2,3)).shape
torch.ones(2).new_zeros(2,dtype=torch.int32,requires_grad=True)
torch.ones(2).new_ones((2,),dtype=torch.int32)
torch.ones(-1)
torch.full((-1,),2)
torch.empty(-1)
torch.empty((2,-3))
torch.ones(2).new_zeros(-1)
torch.ones(2).new_empty(-1)
torch.ones(1).is_nonzero()
""")
def creation(torch, line):
    return evaluate(torch, line, np=np, copy=copy, pickle=pickle)


@case
def within_a_recording(torch):
    x = torch.ones(3) * 2
    yield x + torch.zeros(3) + torch.ones(3, dtype=torch.int64) + torch.full((3,), 2.5)
    y = torch.rand(2, 3).t() * 1
    for like in (torch.zeros_like, torch.ones_like, torch.empty_like):
        made = like(y)
        yield made.stride(), made.dtype, made.shape
    yield torch.full_like(y, 3, dtype=torch.int32)
    z = torch.ones(2, 3, 4, 5) * 1
    last = torch.zeros_like(z, memory_format=torch.channels_last)
    yield last.stride(), last.sum(), torch.full((2,), 7)
    w = torch.zeros(2, requires_grad=True)
    (w * 3).sum().backward()
    yield w, w.is_leaf, w.grad


@case
def channels_last(torch):
    y = torch.ones(2, 3, 4, 5)
    c = y.to(memory_format=torch.channels_last)
    yield c.stride(), c.is_contiguous()
    yield c.is_contiguous(memory_format=torch.channels_last), c.contiguous().stride()
    yield (c * 2).stride(), c.double().stride(), torch.zeros_like(c).stride()
    yield torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride()


@case
def gaps_between_elements(torch):
    t = torch.empty_strided((2, 2), (10, 1))
    t.fill_(2)
    yield t, t.stride(), t.sum(), t._is_view()
    t[1, 1] = 5
    yield t.t(), t[1], t.untyped_storage().nbytes()


NUMBERS = (
    *(2**63, 2**64, -(2**63) - 1, 2**70, 2**1100, 2**31, 300, -1, -129, True),
    *(1e30, 1e10, 2.5, float("nan"), float("inf"), -float("inf"), 1 + 2j, 0j),
)


@case.over(
    *("int64", "int32", "uint8", "int8", "bool", "uint16", "uint64"),
    *("float16", "bfloat16", "float32", "complex64"),
)
def numbers_that_may_not_fit(torch, name):
    dtype = getattr(torch, name)
    x = torch.zeros(1, dtype=dtype)
    for number in NUMBERS:
        yield number, attempt(torch.full, (1,), number, dtype=dtype)
        yield attempt(torch.full_like, x, number), attempt(x.new_full, (1,), number)
        yield attempt(torch.zeros(1, dtype=dtype).fill_, number)


@case.over("int64", "uint8", "bool", "float16", "float32")
def numbers_filled_in_by_masks(torch, name):
    dtype, mask = getattr(torch, name), torch.tensor([True])

    def filled(number):
        return repr(torch.zeros(1, dtype=dtype).masked_fill_(mask, number))

    for number in NUMBERS:
        yield number, attempt(filled, number)


@case
def numbers_that_decide_the_dtype(torch):
    for number in (2**63, 2**64, -(2**63) - 1, 2**62, 2.5, True, 1j):
        yield attempt(torch.full, (1,), number), attempt(torch.full, (), number)
        yield attempt(torch.scalar_tensor, number, dtype=torch.int32)
        yield attempt(torch.nn.init.constant_, torch.zeros(1), number)


@case.lines(
    """
    torch.zeros(True)
    torch.ones(size=True)
    torch.linspace(0, 1j, 3, dtype=torch.float32)
    torch.randint(2**63, (2,))
    torch.randint(-2**70, 2, (2,))
    torch.empty((2, 2, 2, 2), memory_format=torch.preserve_format)
    """
)
def refused_values(torch, line):
    return evaluate(torch, line)


MAKERS = (
    *(("zeros", 2), ("empty", 2), ("full", (2,), 3), ("rand", 2), ("randint", 3, (2,))),
    *(("randperm", 2), ("arange", 2), ("linspace", 0, 1, 2), ("eye", 2)),
)


@case.over(*MAKERS)
def gradients_of_what_is_filled(torch, maker):
    name, *args = maker
    make = getattr(torch, name)
    for out in (torch.ones(2), torch.ones(4)[::2], torch.ones(2, dtype=torch.int64)):
        made = attempt(make, *args, out=out, requires_grad=True)
        yield made is out, out.requires_grad, out.is_leaf
        yield None if made is out else made
    with torch.no_grad():
        leaf = torch.ones(2, requires_grad=True)
        make(*args, out=leaf)
        yield leaf.requires_grad
        later = torch.ones(2, requires_grad=True).exp()
        yield make(*args, out=later).requires_grad
