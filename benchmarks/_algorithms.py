"""Training steps with more than a model and a loss, as scripts write them."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from typing import Any

from ._case import Step


def perceptron(torch: Any, *sizes: int, activation: str = "ReLU") -> Any:
    nn = torch.nn
    layers: list[Any] = []
    for given, made in pairwise(sizes):
        layers += [nn.Linear(given, made), getattr(nn, activation)()]
    return nn.Sequential(*layers[:-1])


def deep_q_learning(torch: Any) -> Step:
    """An action, 128 transitions joined, targets by a mask, a target network."""
    nn, F = torch.nn, torch.nn.functional
    policy, target = (perceptron(torch, 4, 128, 128, 2) for _ in range(2))
    target.load_state_dict(policy.state_dict())
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-5, amsgrad=True)
    chance = random.Random(0)
    memory = [
        (
            torch.randn(1, 4),
            torch.tensor([[chance.randrange(2)]]),
            torch.randn(1, 4) if chance.random() > 0.05 else None,
            torch.tensor([1.0]),
        )
        for _ in range(1000)
    ]

    def step() -> float:
        with torch.no_grad():
            state = memory[chance.randrange(1000)][0]
            policy(state).max(1).indices.view(1, 1).item()
        states, actions, later, rewards = zip(*chance.sample(memory, 128), strict=True)
        goes_on = torch.tensor([state is not None for state in later])
        later = torch.cat([state for state in later if state is not None])
        values = policy(torch.cat(states)).gather(1, torch.cat(actions))
        expected = torch.zeros(128)
        with torch.no_grad():
            expected[goes_on] = target(later).max(1).values
        expected = expected * 0.99 + torch.cat(rewards)
        loss = F.smooth_l1_loss(values, expected.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(policy.parameters(), 100)
        optimizer.step()
        own, other = target.state_dict(), policy.state_dict()
        for key in other:
            own[key] = other[key] * 0.005 + own[key] * 0.995
        target.load_state_dict(own)
        return loss.item()

    return step


def policy_gradient(torch: Any) -> Step:
    """An episode of 10 to 60 turns: each draws an action and reads it; one backward."""
    nn, F = torch.nn, torch.nn.functional
    policy = nn.Sequential(
        nn.Linear(4, 128), nn.Dropout(0.6), nn.ReLU(), nn.Linear(128, 2)
    )
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-5)
    chance = random.Random(0)

    def step() -> float:
        taken, returns, last = [], [], 0.0
        for _ in range(chance.randrange(10, 60)):
            state = torch.tensor([[chance.random() for _ in range(4)]])
            choice = torch.distributions.Categorical(F.softmax(policy(state), 1))
            action = choice.sample()
            taken.append(choice.log_prob(action))
            last = action.item() + 0.99 * last
            returns.insert(0, last)
        gains = torch.tensor(returns)
        gains = (gains - gains.mean()) / (gains.std() + 1e-8)
        loss = torch.cat([-t * g for t, g in zip(taken, gains, strict=True)]).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def proximal_policy(torch: Any) -> Step:
    """Four shuffled batches of 512, a distribution, clipped gradients."""
    import numpy as np

    nn = torch.nn
    actor = perceptron(torch, 8, 64, 64, 2, activation="Tanh")
    critic = perceptron(torch, 8, 64, 64, 1, activation="Tanh")
    spread = nn.Parameter(torch.zeros(2))
    parameters = [*actor.parameters(), *critic.parameters(), spread]
    optimizer = torch.optim.Adam(parameters, lr=1e-5)
    seen, acted = torch.randn(2048, 8), torch.randn(2048, 2)
    advantages, returns, before = (torch.randn(2048) for _ in range(3))
    order = np.arange(2048)

    def step() -> float:
        np.random.shuffle(order)
        found = 0.0
        for start in range(0, 2048, 512):
            chosen = order[start : start + 512]
            policy = torch.distributions.Normal(actor(seen[chosen]), spread.exp())
            likelihood = policy.log_prob(acted[chosen]).sum(-1)
            ratio = (likelihood - before[chosen]).exp()
            gain = advantages[chosen]
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            loss = torch.max(-gain * ratio, -gain * ratio.clamp(0.8, 1.2)).mean()
            loss = loss - 0.01 * policy.entropy().sum(-1).mean()
            value = critic(seen[chosen]).view(-1)
            loss = loss + 0.25 * ((value - returns[chosen]) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, 0.5)
            optimizer.step()
            found = loss.item()
        return found

    return step


def meta_learning(torch: Any) -> Step:
    """Four tasks, three steps of each that are differentiated themselves."""
    F = torch.nn.functional
    sizes = (1, 40, 40, 1)
    weights = []
    for given, made in pairwise(sizes):
        weights += [torch.randn(made, given) / given**0.5, torch.zeros(made)]
    for weight in weights:
        weight.requires_grad_()
    optimizer = torch.optim.Adam(weights, lr=1e-5)

    def forward(x, w):
        x = F.relu(F.linear(x, w[0], w[1]))
        return F.linear(F.relu(F.linear(x, w[2], w[3])), w[4], w[5])

    def samples(height, phase):
        x = torch.rand(10, 1) * 10 - 5
        return x, height * torch.sin(x + phase)

    def step() -> float:
        total: Any = 0.0
        optimizer.zero_grad()
        for _ in range(4):
            wave = torch.rand(1) * 4 + 0.1, torch.rand(1) * 3
            x, y = samples(*wave)
            fast = weights
            for _ in range(3):
                loss = F.mse_loss(forward(x, fast), y)
                grads = torch.autograd.grad(loss, fast, create_graph=True)
                fast = [w - 0.01 * g for w, g in zip(fast, grads, strict=True)]
            x, y = samples(*wave)
            total = total + F.mse_loss(forward(x, fast), y)
        total.backward()
        optimizer.step()
        return total.item()

    return step


def gradient_penalty(torch: Any) -> Step:
    """Five steps of a critic with second derivatives, one of a generator."""
    generator = perceptron(torch, 16, 128, 128, 2)
    critic = perceptron(torch, 2, 128, 128, 1)
    optimizers = [
        torch.optim.Adam(net.parameters(), lr=1e-5, betas=(0.0, 0.9))
        for net in (generator, critic)
    ]

    def step() -> float:
        for _ in range(5):
            real = torch.randn(64, 2)
            fake = generator(torch.randn(64, 16)).detach()
            share = torch.rand(64, 1)
            mixed = (share * real + (1 - share) * fake).requires_grad_()
            scores = critic(mixed)
            (slope,) = torch.autograd.grad(
                scores, mixed, torch.ones_like(scores), create_graph=True
            )
            penalty = ((slope.norm(2, dim=1) - 1) ** 2).mean()
            loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
            optimizers[1].zero_grad()
            loss.backward()
            optimizers[1].step()
        loss = -critic(generator(torch.randn(64, 16))).mean()
        optimizers[0].zero_grad()
        loss.backward()
        optimizers[0].step()
        return loss.item()

    return step


def differential_equation(torch: Any) -> Step:
    """Burgers' equation by a network: derivatives by place and time in the loss."""
    model = perceptron(torch, 2, 50, 50, 50, 1, activation="Tanh")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
    x, t = (torch.rand(1000, 1, requires_grad=True) for _ in range(2))

    def slope(y, by):
        ones = torch.ones_like(y)
        return torch.autograd.grad(y, by, ones, create_graph=True)[0]

    def step() -> float:
        u = model(torch.cat([x, t], 1))
        u_t, u_x = slope(u, t), slope(u, x)
        left = u_t + u * u_x - 0.01 / math.pi * slope(u_x, x)
        start = model(torch.cat([x, 0 * t], 1))
        loss = (left**2).mean() + (start**2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def diffusion(torch: Any) -> Step:
    """Noise that a perceptron predicts; an average of the parameters is kept."""
    nn, F = torch.nn, torch.nn.functional
    kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 100), 0)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.time, self.first = nn.Embedding(100, 64), nn.Linear(2, 64)
            self.layers = nn.ModuleList([nn.Linear(64, 64) for _ in range(3)])
            self.last = nn.Linear(64, 2)

        def forward(self, x, t):
            x = self.first(x)
            for layer in self.layers:
                x = F.silu(layer(x) + self.time(t))
            return self.last(x)

    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
    average = {name: value.clone() for name, value in model.state_dict().items()}
    data = torch.randn(1000, 2)

    def step() -> float:
        x = data[torch.randperm(1000)[:128]]
        t = torch.randint(0, 100, (128,))
        noise, share = torch.randn_like(x), kept[t][:, None]
        noisy = share.sqrt() * x + (1 - share).sqrt() * noise
        loss = F.mse_loss(model(noisy, t), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for name, value in model.state_dict().items():
                average[name].mul_(0.99).add_(value, alpha=0.01)
        return loss.item()

    return step


def graph_network(torch: Any) -> Step:
    """Two layers on 5,000 edges, then an evaluation."""
    nn, F = torch.nn, torch.nn.functional
    nodes = 1000
    source, target = (torch.randint(0, nodes, (5000,)) for _ in range(2))
    degree = torch.zeros(nodes).index_add_(0, target, torch.ones(5000)).clamp(min=1)
    x, y = torch.randn(nodes, 64), torch.randint(0, 7, (nodes,))
    first, second = nn.Linear(64, 64), nn.Linear(64, 7)
    model = nn.ModuleList([first, second])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5, weight_decay=5e-4)

    def spread(x):
        return torch.zeros_like(x).index_add(0, target, x[source]) / degree[:, None]

    def forward(training):
        hidden = F.dropout(F.relu(spread(first(x))), 0.5, training)
        return spread(second(hidden))

    def step() -> float:
        optimizer.zero_grad()
        loss = F.cross_entropy(forward(True)[:140], y[:140])
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            right = (forward(False).argmax(1)[200:] == y[200:]).float().mean().item()
        return loss.item() + right

    return step
