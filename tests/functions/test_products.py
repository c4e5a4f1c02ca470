"""Products of integers and truth values, whose sums PyTorch makes int64; layouts."""

from __future__ import annotations

from tests.oracle import attempt, case, evaluate


@case.lines(r"""
torch.tensordot(torch.ones(3, 4, 5), torch.ones(4, 3, 2), ([2, 1, 3], [1, 2, 0]))
torch.tensordot(torch.ones(3, 4, 5), torch.ones(4, 3, 2), ([1, 9], [0, 1]))
torch.tensordot(torch.ones(3, 4, 5), torch.ones(4, 3, 2), ([1, 1], [0, 0]))
torch.einsum("i->", u[0])
torch.einsum("ij->ji", u)
torch.einsum("ij->i", u > 2)
torch.einsum("ij,k->k", u, u[0])
torch.einsum("ij,kj->ik", u, u)
torch.einsum("ij,kl->ik", u, u)
torch.einsum("ii->", u[:, :2])
torch.einsum("aij,jk->ik", u[None], u.T.to(torch.int64))
torch.einsum("aij,jk->ik", u.expand(2, 2, 3), u.T)
torch.einsum("ij,jk->ik", u > 2, u.T > 2)
torch.einsum("i,j->ij", u[0] > 2, u[1] > 4)
torch.einsum("ij,j->i", u[:, :1] > 2, u[0] > 0)
torch.einsum("i,i,i->i", u[0], u[1], u[0])
torch.einsum("ij->i", u[:, :1].short())
torch.kron(u > 2, u[:1] < 3)
torch.kron(u, u[:1] < 3)
""")
def integers(torch, line):
    return evaluate(torch, line, u=torch.arange(6, dtype=torch.uint8).view(2, 3))


@case
def kronecker_layouts(torch):
    def last(*shape):
        return torch.arange(float(torch.Size(shape).numel())).reshape(shape)

    four, five = torch.channels_last, torch.channels_last_3d
    given = [
        *(last(2, 3), last(3, 2).t(), last(4), last(8)[::2], last(2, 3, 4)),
        *(last(2, 4, 3).mT, last(4, 3, 2).permute(2, 1, 0), last(1, 2, 3, 4)),
        last(1, 2, 3, 4).contiguous(memory_format=four),
        last(2, 3, 2, 2).contiguous(memory_format=four),
        last(1, 2, 2, 2, 2).contiguous(memory_format=five),
        *(torch.tensor(2.0), last(0, 3), last(4, 6)[::2, ::2]),
        last(1, 3).expand(2, 3),
    ]
    for a in given:
        for b in given:
            found = attempt(torch.kron, a, b)
            refused = isinstance(found, Exception)
            yield found if refused else (found.stride(), found.sum())
    image = given[8]
    for order in ((0, 1, 2, 3), (0, 3, 1, 2), (3, 2, 1, 0)):
        sizes = (1, 4, 9, 16)
        back = [order.index(d) for d in range(4)]
        out = torch.zeros([sizes[d] for d in order]).permute(back)
        yield torch.kron(image, image, out=out), out.stride()


@case.over(
    *("ij->ji ij->ij ij ba ii->i ii-> ij-> ij->i ij->j iji->ji iij->j".split()),
    *("...ii->...i ...ij->...ji i...->... iii->i abcd->cb -> i->".split()),
)
def of_one_tensor(torch, equation):
    """A view, summed where the result has no such label."""
    left = equation.partition("->")[0]
    sizes = {"j": 3, "c": 3, "d": 2, "b": 1, "a": 2, ".": 2}
    shape = [sizes.get(c, 2) for c in left.replace("...", ".")]
    count = torch.Size(shape).numel()
    x = torch.arange(1.0, count + 1).view(shape).requires_grad_()
    y = torch.einsum(equation, x)
    yield y, y.stride(), y._is_view(), y.data_ptr() == x.data_ptr()
    yield torch.autograd.grad((y * y).sum(), x)
    yield torch.einsum(equation, x.detach().int()).dtype
    z = torch.zeros(shape)
    torch.einsum(equation, z).add_(1)
    yield z


@case.over(
    *("i,j->ij i,j->ji ij,ij->ij ij,j->ij ij,jk->ijk i,j,k->kij ii,i->i".split()),
    *("ij,ji->ij ...,...->... ij,->ij".split()),
)
def of_which_nothing_is_summed(torch, equation):
    """Products: their dtypes are promoted, and autocast leaves them alone."""
    sizes = {"i": 2, "j": 3, "k": 4, ".": 2}
    operands = []
    for term in equation.partition("->")[0].replace("...", ".").split(","):
        shape = [sizes[c] for c in term]
        x = torch.arange(1.0, torch.Size(shape).numel() + 1)
        operands.append(x.view(shape).requires_grad_())
    y = torch.einsum(equation, *operands)
    yield y, y.stride(), torch.autograd.grad((y * y).sum(), operands)
    yield torch.einsum(equation, operands[0].detach().int(), *operands[1:])
    with torch.autocast("cpu", torch.bfloat16):
        yield torch.einsum(equation, *operands), torch.einsum("ij->ji", y.view(1, -1))
        yield torch.einsum("i,i", y.flatten(), y.flatten()).dtype
