"""`nn.Parameter`, `nn.Buffer` and those without a shape yet, compared with PyTorch."""

from __future__ import annotations

import copy
import pickle
from typing import Any

from tests.nn.small_modules import scale_class
from tests.oracle import attempt, case


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
    nn.LazyBatchNorm1d().share_memory()
    nn.UninitializedParameter(requires_grad=False).requires_grad
    nn.UninitializedParameter(dtype=torch.float64).dtype
    repr(nn.UninitializedBuffer())
    nn.parameter.is_lazy(nn.UninitializedParameter())
    nn.parameter.is_lazy(nn.Parameter())
    isinstance(nn.UninitializedParameter(), nn.Parameter)
    nn.UninitializedParameter() + 1
    torch.sum(nn.UninitializedParameter())
""")
def parameters(torch, line):
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
    buffer = torch.nn.UninitializedBuffer()
    for t in (lazy, buffer):
        yield repr(copy.copy(t)), copy.copy(t).requires_grad, copy.copy(t) is t


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
