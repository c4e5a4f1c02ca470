"""Operators by the dispatcher's names: kinds of results, and names of arguments."""

from __future__ import annotations

from tests.oracle import attempt, case

RESULTS = """
max.dim(x, 0)
max(x, 0)
min.dim(x, 0)
median.dim(x, 0)
topk(x, 1)
topk.default(x, 1)
sort(x)
kthvalue(x, 1)
cummax(x, 0)
aminmax(x)
frexp(x)
linalg_qr(x)
var_mean(x)
split.Tensor(x, 1)
split(x, [1, 1])
split_with_sizes(x, [1, 1])
unbind.int(x)
unbind(x)
chunk(x, 2)
tensor_split(x, 2)
hsplit(x, 3)
unsafe_split(x, 1)
_foreach_add.Scalar([x], 1)
_foreach_add([x], [x])
where(x > 1)
nll_loss_forward(x, t, None, 1, -100)
nll_loss_forward(x, t, None, 2, 1)
nll_loss_forward(x, t, None, 0, -100)
nll_loss_forward.default(x, t, w, 1, -100)
nll_loss_forward.default(x, t, w, 1, 1)
index_put(x, [None, t], torch.tensor(5.0))
index_put(x, [None, t], torch.tensor([5.0, 6.0]), True)
index_put(x, [t, None], torch.tensor([1.0, 2.0, 3.0]))
index_put_(x.clone(), [None, t], torch.tensor(5.0))
index_put(y, [t, None, t], torch.ones(2, 3))
index_put(y, [None, t[:1], t], torch.ones(2, 2))
index_put(y, [None, None, t], torch.ones(2), True)
mm(self=x, mat2=x.t())
mm.default(self=x, mat2=x.t())
add.Tensor(self=x, other=x, alpha=2)
add(self=x, other=x)
relu(self=x)
sum.dim_IntList(self=x, dim=[0])
"""


@case.lines(RESULTS)
def results(torch, line):
    x, t = torch.arange(6.0).view(2, 3), torch.tensor([0, 1])
    w, y = torch.tensor([1.0, 2.0, 3.0]), torch.zeros(2, 3, 2)
    names = {"torch": torch, "x": x, "y": y, "t": t, "w": w}
    found = eval(f"torch.ops.aten.{line}", names)
    yield type(found) if isinstance(found, (tuple, list)) else None, found


@case
def names(torch):
    aten, ops = torch.ops.aten, torch._ops
    yield aten.mm.default._name, aten.add.Tensor._name, aten.add._qualified_op_name
    yield isinstance(aten.mm.default, ops.OpOverload)
    yield isinstance(aten.mm, ops.OpOverloadPacket)
    for function in (aten.add.Tensor, aten.add, aten.mm.default, torch.add):
        yield torch.overrides.resolve_name(function)
    yield attempt(torch.overrides.resolve_name, 5)
