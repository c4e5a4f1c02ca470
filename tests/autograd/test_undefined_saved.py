"""What a node saved, where no gradient arrives at it: it is looked at and used up."""

from __future__ import annotations

from tests.oracle import attempt, case


def nothing(torch):
    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return None

    return Nothing.apply


def ones(torch, n=2):
    return torch.ones(n, requires_grad=True)


def overwritten_operand(torch, dropped, read):
    y = ones(torch) * 1
    z = dropped(y.exp() * y)
    read(z)
    y.add_(1)
    return z, y


def overwritten_result(torch, dropped, read):
    y = ones(torch).exp()
    z = dropped(y)
    read(z)
    y.add_(1)
    return z, y


def overwritten_view(torch, dropped, read):
    y = ones(torch, 4) * 2
    v = y[:2]
    v.exp_()
    v.mul_(2)
    z = dropped(y)
    read(z)
    return z, y


def overwritten_view_of_view(torch, dropped, read):
    y = ones(torch, 4) * 2
    y[:3][1:].exp_()
    y[:3].mul_(2)
    return dropped(y), y


def written_value(torch, dropped, read):
    s = ones(torch).exp()
    y = ones(torch, 4) * 2
    y[:2] = s
    z = dropped(y)
    read(z)
    s.add_(1)
    return z, y


def written_factor(torch, dropped, read):
    s = ones(torch).exp()
    y = ones(torch, 4) * 2
    y[:2].mul_(s)
    return dropped(y), s


def result(torch, dropped, read):
    y = ones(torch).exp()
    z = dropped(y)
    read(z)
    return z, y


def one_of_several(torch, dropped, read):
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = (x * x).max(1)[0]
    return dropped(y), y


def beside_another(torch, dropped, read):
    a, b = ones(torch, 4).exp().split(2)
    return dropped(a) + b.sin(), a


def node_hook(torch, dropped, read):
    y = ones(torch).exp()
    z = y * y
    z.grad_fn.register_hook(lambda inputs, grads: (None, inputs[1]))
    return z, y


def node_hooks(torch, dropped, read):
    y = ones(torch).exp()
    y.grad_fn.register_prehook(lambda grads: (None,))
    read(y)
    return y * 2, y


def data_of_result(torch, dropped, read):
    y = torch.eye(2, requires_grad=True).inverse()
    z = dropped(y)
    y.data.add_(1)
    return z, z


WAYS = [
    overwritten_operand,
    overwritten_result,
    overwritten_view,
    overwritten_view_of_view,
    written_value,
    written_factor,
    result,
    one_of_several,
    beside_another,
    node_hook,
    node_hooks,
    data_of_result,
]


@case.over(way=[way.__name__ for way in WAYS], read=[False, True])
def saved(torch, way, read):
    dropped, reading = nothing(torch), lambda z: z.tolist() if read else None
    for retain in (False, True):
        for _ in range(2):  # what was met before is repeated
            z, y = globals()[way](torch, dropped, reading)
            yield attempt(z.sum().backward, retain_graph=retain)
            yield attempt(y.sum().backward)


@case
def asked_for(torch):
    y = ones(torch).exp()
    w = y.sin()
    z = nothing(torch)(w)
    z.sum().backward(inputs=[y], retain_graph=True)
    w.sum().backward(inputs=[y], retain_graph=True)
    yield y.grad
    z.sum().backward(inputs=[y])
    yield attempt(w.sum().backward, inputs=[y])


@case(warnings=False)
def in_anomaly_mode(torch):
    for made in (torch.sin, nothing(torch)):
        with torch.autograd.detect_anomaly():
            y = ones(torch).exp()
            z = made(y)
            y.add_(1)
            yield attempt(z.sum().backward)
        yield attempt(z.sum().backward)


@case
def saved_tensor_hooks(torch):
    log = []
    hooks = torch.autograd.graph.saved_tensors_hooks
    with hooks(lambda t: t.clone(), lambda t: (log.append(t.tolist()), t)[1]):
        x = ones(torch, 4)
        y = x * 2
        y[:2].exp_()
        z = y * x
    nothing(torch)(z).sum().backward()
    return log


def gradients(torch):
    """Leaves, values made of these, and gradients of their product by the values."""
    a, b = ones(torch), torch.full((2,), 2.0, requires_grad=True)
    u, v = a.exp(), b.sin()
    return (a, b), (u, v), torch.autograd.grad((u * v).sum(), [u, v], create_graph=True)


@case.over(k=[0, 1])
def gradients_of_gradients(torch, k):
    dropped = nothing(torch)
    leaves, values, found = gradients(torch)
    dropped(found[k]).sum().backward()
    for leaf, value in zip(leaves, values, strict=True):
        yield attempt(value.sum().backward), leaf.grad


@case
def nodes_behind_gradients(torch):
    dropped = nothing(torch)
    log = []
    for _ in range(2):
        leaves, values, found = gradients(torch)
        for name, value in zip("uv", values, strict=True):
            value.register_hook(lambda grad, name=name: log.append((name, grad)))
            value.grad_fn.register_hook(
                lambda inputs, grads, name=name: log.append((name, inputs, grads))
            )
        first, second = found
        for out in (
            dropped(first),
            dropped(second),
            dropped(second) + first,
            dropped(first) + second,
            dropped(second) + dropped(first),
        ):
            out.sum().backward(retain_graph=True)
            yield [*log]
            log.clear()
        yield [leaf.grad for leaf in leaves]


@case
def second_derivatives(torch):
    x = ones(torch)
    y = x.exp()
    z = y.exp()
    (grad,) = torch.autograd.grad(z.sum(), y, create_graph=True)
    nothing(torch)(grad).sum().backward()
    yield attempt(z.sum().backward)
    yield attempt(y.sum().backward)
