"""Operands of products that PyTorch copies to arrange them anew, overwritten since.

The copy is what it saves: nothing is refused, and gradients use the old values. Where a
view of the operand is saved, they use the new values, or versions are counted.
"""

from __future__ import annotations

from tests.oracle import attempt, case

COMPILED_EVERY = 16

EINSUMS = """
hid,hjd->hij 1,4,3 1,5,3
hid,hjd->hij 2,4,3 2,5,3
hnc,hcd->hnd 1,4,3 1,3,5
hbnc,hcd->hbnd 2,2,4,3 2,3,5
bhid,hjd->bhij 2,2,4,3 2,5,3
bihd,bjhd->bhij 2,2,4,3 2,2,4,3
bhid,bhjd->bhij 2,2,4,3 2,2,3,3
ij,jk->ik 4,3 3,5
ij,jk->ki 4,3 3,5
i,i-> 3 3
i,j->ij 3 4
ij,ij-> 2,3 2,3
ij,ji-> 2,3 3,2
abc,acd->bd 2,4,3 2,3,5
abc,cad->bd 2,4,3 3,2,5
bd,bjd->bj 2,4 2,3,4
bn,nbd->bd 2,4 4,2,4
ii,ij->j 3,3 3,4
aij,aij->i 2,3,4 2,3,4
ijk,ik->j 2,3,4 2,1
...ij,...jk->...ik 2,2,3 2,3,4
...ij,jk->...ik 2,2,3 3,4
"""

PRODUCTS = {
    "mm": (lambda t, a, b: a @ b, (4, 3), (3, 5)),
    "batches": (lambda t, a, b: a @ b, (2, 2, 4, 3), (2, 2, 3, 5)),
    "transposed": (lambda t, a, b: a @ b.mT, (2, 2, 4, 3), (2, 2, 5, 3)),
    "permuted": (
        lambda t, a, b: a @ b.permute(0, 2, 1, 3),
        (2, 2, 4, 3),
        (2, 3, 2, 5),
    ),
    "spread first": (lambda t, a, b: a @ b, (2, 2, 4, 3), (1, 2, 3, 5)),
    "spread last": (lambda t, a, b: a @ b, (2, 2, 4, 3), (2, 1, 3, 5)),
    "spread all": (lambda t, a, b: a @ b, (2, 2, 4, 3), (1, 1, 3, 5)),
    "one of three": (lambda t, a, b: a @ b, (1, 4, 3), (2, 3, 5)),
    "other of three": (lambda t, a, b: a @ b, (2, 4, 3), (1, 3, 5)),
    "matrix last": (lambda t, a, b: a @ b, (2, 4, 3), (3, 5)),
    "matrix first": (lambda t, a, b: a @ b, (4, 3), (2, 3, 5)),
    "folded": (lambda t, a, b: b.transpose(0, 1) @ a, (3, 5), (2, 4, 3)),
    "vector last": (lambda t, a, b: b @ a, (3,), (2, 4, 3)),
    "vector first": (lambda t, a, b: a @ b, (3,), (2, 3, 4)),
    "vectors": (lambda t, a, b: a @ b, (3,), (3,)),
    "linear": (lambda t, a, b: t.nn.functional.linear(b, a), (5, 3), (2, 4, 3)),
    "linear across": (
        lambda t, a, b: t.nn.functional.linear(b.mT, a, a[:, 0]),
        (5, 3),
        (2, 3, 4),
    ),
    "linear of four": (
        lambda t, a, b: t.nn.functional.linear(b.transpose(1, 2), a),
        (5, 3),
        (2, 4, 2, 3),
    ),
    "tensordot": (lambda t, a, b: t.tensordot(a, b, 1), (2, 4, 3), (3, 5, 2)),
    "tensordot across": (
        lambda t, a, b: t.tensordot(a, b, ([1], [1])),
        (2, 4, 3),
        (3, 4, 2),
    ),
    "tensordot of two": (
        lambda t, a, b: t.tensordot(a, b, ([0, 2], [1, 0])),
        (2, 4, 3),
        (3, 2, 2),
    ),
    "inner": (lambda t, a, b: t.inner(a, b), (2, 4, 3), (2, 3)),
    "inner across": (lambda t, a, b: t.inner(a, b.mT), (2, 4, 3), (2, 3, 4)),
}


def overwritten(torch, function, shapes):
    """The gradients after each way of writing to an operand, a constant or a leaf."""
    log = []
    for which in range(len(shapes)):
        for tracked in (True, False):
            for how in ("data", "counted"):
                for read in (False, True):
                    torch.manual_seed(0)
                    leaves = [torch.randn(shape) for shape in shapes]
                    for i, leaf in enumerate(leaves):
                        leaf.requires_grad_(tracked or i != which)
                    y = function(*leaves)
                    if read:
                        y.tolist()
                    with torch.no_grad():
                        leaf = leaves[which]
                        (leaf.data if how == "data" else leaf).mul_(2)
                    # (Errors tell of the operand, PyTorch's of its view.)
                    error = attempt(y.sum().backward)
                    log.append((which, tracked, how, read, error is None))
                    log.append([leaf.grad for leaf in leaves])
    return log


@case.over(name=sorted(PRODUCTS))
def products(torch, name):
    function, *shapes = PRODUCTS[name]
    return overwritten(torch, lambda a, b: function(torch, a, b), shapes)


@case.lines(EINSUMS)
def contractions(torch, line):
    equation, *texts = line.split()
    shapes = [tuple(int(n) for n in text.split(",")) for text in texts]
    return overwritten(torch, lambda *leaves: torch.einsum(equation, *leaves), shapes)


@case
def freed(torch):
    """A second backward finds the copy freed, as it does what is saved else."""
    a, b = torch.randn(2, 2, 4, 3, requires_grad=True), torch.randn(2, 1, 3, 5)
    y = (a @ b).sum()
    y.backward()
    return attempt(y.backward)


@case
def in_a_loop(torch):
    """What is written to comes again with the same steps."""
    torch.manual_seed(0)
    a, b = torch.randn(2, 3, 2, 4, requires_grad=True), torch.randn(3, 4, 5)
    book = torch.randn(3, 4, 5, requires_grad=True)
    for _ in range(4):
        y = torch.einsum("bhid,hdj->bhij", a, book) @ b.mT
        book.data.mul_(0.9)
        b.add_(0.1)
        y.sum().backward()
        yield y.sum(), a.grad, book.grad


ORDERS = {
    "dense": lambda x: x,
    "transposed": lambda x: x.mT.contiguous().mT,
    "channels last": lambda x: x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2),
    "stepped": lambda x: x.repeat(1, 1, 1, 2)[..., ::2],
}


@case.over(name=["group_norm", "instance_norm"], order=sorted(ORDERS))
def normalized(torch, name, order):
    """Their input is made contiguous first; its statistics are saved beside it."""
    torch.manual_seed(0)
    f = torch.nn.functional
    for read in (False, True):
        for bias in (None, torch.ones(4, dtype=torch.float64)):
            leaf = torch.randn(2, 4, 3, 5, dtype=torch.float64).requires_grad_()
            weight = torch.randn(4, dtype=torch.float64).requires_grad_()
            x = ORDERS[order](leaf * 1)
            if name == "group_norm":
                y = f.group_norm(x, 2, weight, bias)
            else:
                y = f.instance_norm(x, weight=weight, bias=bias)
            if read:
                y.tolist()
            with torch.no_grad():
                x.mul_(2)
            error = attempt((y * y * y).sum().backward)
            yield error is None, leaf.grad, weight.grad
