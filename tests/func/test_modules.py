"""Modules as functions: functional_call, ensembles, and programs made of them."""

import importlib

from tests.oracle import attempt, case


def model(torch):
    nn = torch.nn
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    return net, torch.randn(5, 3), torch.randn(5, 2), dict(net.named_parameters())


@case
def functional_call(torch):
    call = torch.func.functional_call
    net, x, _, p = model(torch)
    w, b = torch.zeros(4, 3), torch.ones(4)
    yield call(net, {k: v * 2 for k, v in p.items()}, x)
    yield call(net, {"0.weight": w}, (x,))
    yield call(net, [{"0.weight": w}, {"0.bias": b}], (x,))
    yield call(net, {}, kwargs={"input": x})
    yield net[0].weight is p["0.weight"]
    yield attempt(call, net, {"9.foo": w}, (x,))
    yield attempt(call, net, {"0.weight": w}, (x,), strict=True)
    yield attempt(call, net, {**p, "q": w}, (x,), strict=True)
    yield attempt(call, net, [{"0.weight": w}, {"0.weight": w}], (x,))
    yield attempt(call, net, 3, (x,))
    yield attempt(call, net, [3], (x,))
    yield attempt(call, net, {"0.weight": 3}, (x,))
    yield torch.nn.utils.stateless.functional_call(net, {"0.weight": w}, (x,))


@case
def tied(torch):
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Parameter(torch.ones(1))
            self.b = self.a
            self.register_buffer("c", torch.zeros(1))

        def forward(self, x):
            self.c.add_(1)
            return self.a + self.b * x

    call, net, one = torch.func.functional_call, Tied(), torch.ones(1)
    five, six = torch.tensor([5.0]), torch.tensor([6.0])
    yield call(net, {"a": five}, one)
    yield call(net, {"a": five}, one, tie_weights=False)
    yield attempt(call, net, {"a": five, "b": six}, one)
    given = {"c": torch.tensor([10.0])}
    yield call(net, given, one), given, net.c, list(net._parameters)


@case
def ensembles(torch):
    nn, stack = torch.nn, torch.func.stack_module_state
    torch.manual_seed(0)
    models = [nn.Linear(3, 2) for _ in range(3)]
    params, buffers = stack(models)
    yield params, buffers
    x = torch.randn(4, 3)

    def call(p, b, x):
        return torch.func.functional_call(models[0], (p, b), x)

    out = torch.vmap(call, (0, 0, None))(params, buffers, x)
    yield out.detach()
    out.sum().backward()
    yield params["weight"].grad
    yield attempt(stack, [])
    yield attempt(stack, [models[0], nn.Tanh()])
    yield attempt(stack, [models[0], nn.Linear(3, 2).eval()])
    models[1].weight.requires_grad_(False)
    yield attempt(stack, models)
    yield attempt(torch.vmap(nn.BatchNorm1d(3)), torch.randn(2, 4, 3))
    layer = nn.InstanceNorm1d(3, track_running_stats=True)
    yield attempt(torch.vmap(layer), torch.randn(2, 4, 3, 5))
    norm = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2))
    yield torch.func.replace_all_batch_norm_modules_(norm) is norm
    yield norm[0].running_mean, norm[0].track_running_stats


@case
def gradients_of_samples(torch):
    f, nn = torch.func, torch.nn
    net, x, y, p = model(torch)

    def loss(p, x, y):
        return nn.functional.mse_loss(f.functional_call(net, p, x), y)

    fixed = {k: v.detach() for k, v in p.items()}
    yield torch.vmap(f.grad(loss), in_dims=(None, 0, 0))(fixed, x, y)
    yield f.grad(loss)(fixed, x, y)
    yield f.grad_and_value(loss)(p, x, y)[1]


@case
def meta_learning(torch):
    f, nn = torch.func, torch.nn
    net, x, y, p = model(torch)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    def loss(p, x, y):
        return nn.functional.mse_loss(f.functional_call(net, p, x), y)

    for _ in range(3):
        optimizer.zero_grad()
        inner = f.grad(loss)(p, x, y)
        fast = {k: p[k] - 0.1 * inner[k] for k in p}
        outer = loss(fast, x, y)
        outer.backward()
        optimizer.step()
        yield outer
    yield net[0].weight


@case
def differential_equation(torch):
    net, _, _, _ = model(torch)
    grad = torch.func.grad
    t = torch.linspace(0, 1, 4)

    def u(s):
        return net(s.expand(3)).sum()

    first, second = torch.vmap(grad(u))(t), torch.vmap(grad(grad(u)))(t)
    yield first.detach(), second.detach()
    ((second + first) ** 2).mean().backward()
    yield net[0].weight.grad


@case
def tangent_kernel(torch):
    f = torch.func
    net, x, _, p = model(torch)
    fixed = {k: v.detach() for k, v in p.items()}

    def call(p, x):
        return f.functional_call(net, p, (x.unsqueeze(0),)).squeeze(0)

    jac = torch.vmap(f.jacrev(call), (None, 0))(fixed, x[:2])
    yield sum(
        torch.einsum("Naf,Mbf->NMab", j.flatten(2), j.flatten(2)) for j in jac.values()
    )


# PyTorch imports what is deprecated for forward mode.
@case(warnings=False).over(transform=["grad", "vjp", "jvp", "jacrev", "vmap"])
def statistics_that_a_transform_captures(torch, transform):
    """The kernel of batch normalization writes to them, which nothing refuses."""
    F = torch.nn.functional
    x = torch.arange(12.0).reshape(4, 3)
    kinds = {
        "batch": (F.batch_norm, x, {"training": True}),
        "instance": (F.instance_norm, torch.arange(24.0).reshape(2, 3, 4), {}),
        "frozen": (F.batch_norm, x, {}),
    }
    for norm, x, options in kinds.values():
        mean, var = torch.zeros(3), torch.ones(3)

        def run(x, norm=norm, mean=mean, var=var, options=options):
            return norm(x, mean, var, **options).sin().sum()

        if transform in ("vjp", "jvp"):
            given = (x,) if transform == "vjp" else ((x,), (torch.ones_like(x),))
            found = attempt(getattr(torch.func, transform), run, *given)
            yield found[0] if isinstance(found, tuple) else found
        else:
            given = x[None] if transform == "vmap" else x
            yield attempt(getattr(torch.func, transform)(run), given)
        yield mean, var, mean.requires_grad
    norm = torch.nn.BatchNorm1d(3)
    yield attempt(torch.func.vjp, norm, kinds["batch"][1])


@case
def functorch_says_what_replaced_it(torch):
    where = "" if torch.__name__ == "torch" else "torchshim."
    functorch = importlib.import_module(f"{where}functorch")
    x = torch.ones(2)
    yield functorch.vmap(lambda a: a * 2)(x)
    for name in "grad grad_and_value jacrev jacfwd hessian".split():
        yield getattr(functorch, name)(lambda a: (a * a).sum())(x)
    yield functorch.vjp(torch.sin, x)[0], functorch.jvp(torch.sin, (x,), (x,))
    net = torch.nn.Linear(2, 1)
    functorch.make_functional(net)
    functorch.make_functional_with_buffers(net)
    functorch.combine_state_for_ensemble([net])
