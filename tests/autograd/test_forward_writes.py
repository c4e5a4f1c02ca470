"""Writes to dual tensors that share memory, or that autograd does not see."""

from __future__ import annotations

from tests.oracle import case


def tangent(torch, tensor):
    found = torch.autograd.forward_ad.unpack_dual(tensor).tangent
    return None if found is None else found.detach()


# (PyTorch warns of itself once, where forward mode is first used.)
@case(warnings=False).over(read=[False, True], view=[False, True])
def without_gradients(torch, read, view):
    """Under `no_grad` a tensor in a graph keeps its place there and its tangent."""
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        x = torch.arange(1.0, 5.0, requires_grad=True)
        base = fw.make_dual(x, torch.full((4,), 3.0)) * 2
        dual = base[:2] if view else base
        for _ in range(2):
            with torch.no_grad():
                dual.add_(1).mul_(2)
            if read:
                dual.tolist()
            yield dual.detach(), tangent(torch, dual), tangent(torch, base)
        yield torch.autograd.grad(base.sum(), x)


@case(warnings=False).over(alias=["data", "detach"], tracked=[False, True])
def to_detached_memory(torch, alias, tracked):
    """What is written to an alias without a tangent gives it one, and nobody else."""
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        dual = fw.make_dual(torch.arange(1.0, 5.0), torch.ones(4))
        x = torch.full((4,), 7.0, requires_grad=tracked)
        other = fw.make_dual(x, torch.full((4,), 3.0)) * 1
        made = dual.data if alias == "data" else dual.detach()
        made[:1] = other[:1]
        yield dual.detach(), tangent(torch, dual), tangent(torch, made)
        made.mul_(2)
        yield dual.detach(), tangent(torch, dual), tangent(torch, made)
        dual[1:].mul_(2)
        yield dual.detach(), tangent(torch, dual), tangent(torch, made)
