# compat: rtol=1e-3 atol=1e-5 seconds=5 (many steps of float32 sums in another order)
"""A neural ODE: Runge-Kutta steps and an adjoint backward in a custom Function."""

import torch
import torch.nn as nn

torch.manual_seed(0)


def rk4_step(f, t, dt, z):
    k1 = f(t, z)
    k2 = f(t + dt / 2, z + dt * k1 / 2)
    k3 = f(t + dt / 2, z + dt * k2 / 2)
    k4 = f(t + dt, z + dt * k3)
    return z + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


class ODEF(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.lin1 = nn.Linear(dim + 1, hidden)
        self.lin2 = nn.Linear(hidden, dim)

    def forward(self, t, z):
        time = t.expand(z.shape[0], 1)
        return self.lin2(torch.tanh(self.lin1(torch.cat([z, time], dim=1))))

    def flatten_parameters(self):
        return torch.cat([p.flatten() for p in self.parameters()])


class ODEAdjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z0, times, flat_parameters, func):
        with torch.no_grad():
            z = z0.new_zeros((len(times), *z0.shape))
            z[0] = z0
            for i in range(len(times) - 1):
                z0 = rk4_step(func, times[i], times[i + 1] - times[i], z0)
                z[i + 1] = z0
        ctx.func = func
        ctx.save_for_backward(times, z.clone(), flat_parameters)
        return z

    @staticmethod
    def backward(ctx, dLdz):
        func = ctx.func
        times, z, flat_parameters = ctx.saved_tensors
        params = tuple(func.parameters())
        adj_z = torch.zeros_like(dLdz[0])
        adj_p = torch.zeros_like(flat_parameters)

        def dynamics(t, state):
            z, a, _ = state
            with torch.enable_grad():
                z = z.detach().requires_grad_(True)
                out = func(t, z)
                grads = torch.autograd.grad(out, (z, *params), a, allow_unused=True)
            flat = torch.cat([g.flatten() for g in grads[1:]])
            return out.detach(), -grads[0], -flat

        for i in range(len(times) - 1, 0, -1):
            adj_z = adj_z + dLdz[i]
            state, dt = (z[i], adj_z, adj_p), times[i - 1] - times[i]
            k1 = dynamics(times[i], state)
            middle = [s + dt * k / 2 for s, k in zip(state, k1, strict=True)]
            k2 = dynamics(times[i] + dt / 2, middle)
            state = [s + dt * k for s, k in zip(state, k2, strict=True)]
            adj_z, adj_p = state[1], state[2]
        adj_z = adj_z + dLdz[0]
        return adj_z, None, adj_p, None


class NeuralODE(nn.Module):
    def __init__(self, func):
        super().__init__()
        self.func = func

    def forward(self, z0, times):
        return ODEAdjoint.apply(z0, times, self.func.flatten_parameters(), self.func)


def expm(a, terms=12):
    result = term = torch.eye(len(a))
    for k in range(1, terms):
        term = term @ a / k
        result = result + term
    return result


times = torch.linspace(0.0, 1.0, 5)
matrix = torch.tensor([[-0.1, -2.0], [2.0, -0.1]])
start = torch.randn(6, 2)
target = torch.stack([start @ expm(matrix * t).T for t in times])
print("target", target[-1, 0])

ode = NeuralODE(ODEF(2, 12))
optimizer = torch.optim.RMSprop(ode.parameters(), lr=1e-2)
for step in range(16):
    prediction = ode(start, times)
    loss = (prediction - target).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 3:
        print(f"{step}: {loss.item():.5f}")

# The adjoint against differentiation through the solver.
z0 = start.clone().requires_grad_(True)
ode(z0, times)[-1].pow(2).sum().backward()
z1 = start.clone().requires_grad_(True)
z = z1
for i in range(4):
    z = rk4_step(ode.func, times[i], times[i + 1] - times[i], z)
z.pow(2).sum().backward()
print("difference below 1e-1:", bool((z0.grad - z1.grad).abs().max() < 1e-1))
print(z1.grad[:2], type(ode(z0, times).grad_fn).__name__)
