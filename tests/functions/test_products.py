"""Products of integers and truth values, whose sums PyTorch makes int64."""

from __future__ import annotations

from tests.oracle import case, evaluate


@case.lines(r"""
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
