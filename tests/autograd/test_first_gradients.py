"""The first gradient of a leaf becomes its `.grad` without a tangent."""

from __future__ import annotations

from tests.oracle import case


@case(warnings=False)
def tangents_of_gradients(torch):
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        x = torch.ones(2, requires_grad=True)
        d = forward.make_dual(x, torch.ones(2))
        y = (d * d).sum()
        y.backward(retain_graph=True)
        yield x.grad, forward.unpack_dual(x.grad).tangent
        y.backward(retain_graph=True)
        yield x.grad, forward.unpack_dual(x.grad).tangent
        yield torch.autograd.grad(y, x)[0]
        print(torch.autograd.grad((d * d).sum(), x))
        x.grad = torch.zeros(2)
        (d * d).sum().backward()
        print(x.grad)
        x.grad = None
        ((d * d).sum() + (d * 3).sum()).backward()
        print(x.grad)
        z = torch.ones(2, requires_grad=True)
        (z.expand(3, 2) * d).sum().backward()
        print(z.grad)
        z.grad = None
        w = z * 1
        w.retain_grad()
        (w * d).sum().backward()
        print(w.grad)
