"""Ranges, identity matrices and indices of triangles, compared with PyTorch."""

from __future__ import annotations

import copy
import pickle

import numpy as np

from tests.oracle import case, evaluate


@case.lines(r"""
torch.arange(1j)
torch.arange(1, 4, float('nan'))
torch.range(1, 4, float('nan'))
torch.arange(0,1,1j)
torch.arange(5)
torch.arange(5.)
torch.arange(0,1,0.1)
torch.arange(5,0,-1)
torch.arange(0,5,-1)
torch.arange(0,5,0)
torch.arange(float('nan'))
torch.arange(1e30)
torch.arange(0,float('inf'))
torch.arange('a')
torch.arange()
torch.arange(1,2,3,4)
torch.arange(torch.tensor(3))
torch.arange(3,dtype=torch.bool)
torch.arange(2,dtype=torch.bool)
torch.arange(True)
torch.arange(3,dtype=torch.complex64)
torch.arange(3,dtype=torch.float16)
torch.arange(0,3,0.5,dtype=torch.int64)
torch.arange(end=3)
torch.arange(start=1,end=3)
torch.arange(1,end=3)
torch.range(1,4)
torch.range(3)
torch.range(end=3)
torch.range(0,1,0.25)
torch.linspace(0,1,5)
torch.linspace(0,10,5,dtype=torch.int64)
torch.linspace(0,10,4,dtype=torch.int64)
torch.linspace(0,1,-1)
torch.linspace(0,1)
torch.linspace(torch.tensor(0.),1,3)
torch.linspace(torch.tensor([0.]),1,3)
torch.linspace(torch.tensor([0.]),torch.tensor(1.),3)
torch.linspace(torch.tensor(0.),torch.tensor([1.]),3)
torch.logspace(torch.tensor([0.]),torch.tensor([1.]),3)
torch.linspace(0,1,1)
torch.linspace(0,1,0)
torch.linspace(0,1j,3)
torch.linspace(0,1,3,dtype=torch.bool)
torch.logspace(0,2,3)
torch.logspace(0,2,3,base=2)
torch.logspace(0,2,3,dtype=torch.int64)
torch.logspace(0,2,1)
torch.logspace(0,1j,3,dtype=torch.float32)
torch.logspace(torch.tensor(0j),1,3,dtype=torch.int64)
torch.linspace(0,1j,3,out=torch.empty(3))
torch.linspace(0j,1,3,out=torch.empty(3))
torch.eye(3)
torch.eye(2,3)
torch.eye(-1)
torch.eye(2,-1)
torch.eye(2,dtype=torch.bool)
torch.tril_indices(3,3)
torch.tril_indices(3,4,1)
torch.triu_indices(3,4,-1)
torch.tril_indices(-1,3)
torch.tril_indices(2,2,dtype=torch.int32)
torch.tril_indices(2,2,dtype=torch.int16)
torch.triu_indices(2,2,dtype=torch.uint8)
torch.linspace(0,1,0,dtype=torch.bool)
torch.linspace(0,1,1,dtype=torch.bool)
torch.linspace(0,1,2,dtype=torch.bool)
torch.logspace(0,1,0,dtype=torch.bool)
torch.logspace(0,1,1,dtype=torch.bool)
torch.triu_indices(2,2,dtype=torch.float32)
""")
def ranges(torch, line):
    return evaluate(torch, line, np=np, copy=copy, pickle=pickle)


@case
def rounded_in_a_program(torch):
    # Within what is recorded, where the ends are arguments of a compiled program.
    for _ in range(3):
        x = torch.ones(3) * 2
        multiples = [torch.linspace(0.0, 11.0 * n, n + 1).long() for n in range(1, 40)]
        far = torch.linspace(-1.0, 3.7, 22)
        edges = torch.histc(x * 3, 49, 0.0, 7.5).argmax()
        yield (x + 1).sum().item()
    yield multiples
    yield [v.hex() for v in far.tolist()], edges


@case.over(dtype=["float32", "float64", "float16", "bfloat16", "int64", "uint8"])
def many(torch, dtype):
    kind = getattr(torch, dtype)
    yield torch.arange(100, dtype=kind)
    if kind.is_floating_point:
        yield torch.arange(0.3, 10, 0.37, dtype=kind)
    if dtype in ("float32", "float64"):
        yield torch.linspace(-3, 7.5, 100, dtype=kind)
    yield torch.linspace(0, 10, 7, dtype=kind), torch.eye(3, 2, dtype=kind)


@case
def within_a_recording(torch):
    x = torch.ones(3) * 2
    for i in range(4):
        x = x + torch.arange(i, i + 3) + torch.linspace(0, i, 3) + torch.eye(3)[i % 3]
    x = x + torch.arange(3, 0, -1) + torch.arange(0.5, 2, 0.5)
    x = x + torch.logspace(0, 2, 3) + torch.tril_indices(2, 2)[0]
    return x


@case.over("int64", "uint8", "int8", "float32", "float16")
def powers_of_casts(torch, dtype):
    for ends in (4.3, 1.2, 4), (0.9, 2.9, 3), (2, 5.5, 6), (3, 0, 1), (4.9, 4.9, 1):
        for base in 3.0, 2.0, 2.5, 0.5:
            if dtype != "int8" or ends[2] > 1:
                yield torch.logspace(*ends, base, dtype=getattr(torch, dtype))


@case
def whole_numbers_at_equal_distances(torch):
    for start, end in ((0, 10), (-540, 546), (0, 26), (1000, -1987), (-3, 0)):
        for steps in (2, 31, 43, 23, 137, 365):
            ends = torch.tensor(start), torch.tensor(end)
            for kind in (torch.int64, torch.int16):
                made = torch.linspace(start, end, steps, dtype=kind)
                yield (
                    made.tolist(),
                    made.equal(torch.linspace(*ends, steps, dtype=kind)),
                )
