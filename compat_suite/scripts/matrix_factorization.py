# compat: rtol=1e-3 atol=1e-5 seconds=6 (many steps of float32 sums in another order)
"""Matrix factorisation for recommendations, with biases, and alternating updates."""

import torch
from torch import nn

torch.manual_seed(31)
n_users, n_items, rank = 12, 15, 3
truth = torch.randn(n_users, 2) @ torch.randn(2, n_items) + 3
observed = torch.rand(n_users, n_items) < 0.6
users, items = observed.nonzero(as_tuple=True)
ratings = truth[users, items] + 0.05 * torch.randn(len(users))
n = len(ratings)
train, test = torch.randperm(n).split([96, n - 96])
print(n, "ratings, mean", f"{ratings.mean():.4f}")


class BiasedMF(nn.Module):
    def __init__(self):
        super().__init__()
        self.user_factors = nn.Embedding(n_users, rank)
        self.item_factors = nn.Embedding(n_items, rank)
        self.user_bias = nn.Embedding(n_users, 1)
        self.item_bias = nn.Embedding(n_items, 1)
        self.mean = nn.Parameter(torch.tensor(3.0), requires_grad=False)
        for e in (self.user_factors, self.item_factors):
            nn.init.normal_(e.weight, std=0.3)
        for e in (self.user_bias, self.item_bias):
            nn.init.constant_(e.weight, 0.0)

    def forward(self, user, item):
        dot = (self.user_factors(user) * self.item_factors(item)).sum(1)
        bias = self.user_bias(user).squeeze() + self.item_bias(item).squeeze()
        return dot + bias + self.mean


model = BiasedMF()
optimizer = torch.optim.Adam(
    filter(lambda p: p.requires_grad, model.parameters()), lr=0.05
)
criterion = nn.MSELoss()
for epoch in range(15):
    model.train()
    order = train[torch.randperm(len(train))]
    total = 0.0
    for index in order.chunk(4):
        prediction = model(users[index], items[index])
        penalty = sum((e.weight**2).mean() for e in model.children())
        loss = criterion(prediction, ratings[index])
        optimizer.zero_grad()
        (loss + 0.02 * penalty).backward()
        optimizer.step()
        total += loss.item()
    if epoch % 3 == 2:
        with torch.no_grad():
            rmse = criterion(model(users[test], items[test]), ratings[test]).sqrt()
        print(f"epoch {epoch}: train {total / 4:.5f}, test rmse {rmse.item():.5f}")

with torch.no_grad():
    scores = model.user_factors.weight @ model.item_factors.weight.T
    scores += model.user_bias.weight + model.item_bias.weight.T + model.mean
    scores = scores.masked_fill(observed, float("-inf"))
    values, best = scores.topk(3, dim=1)
print("recommend", best[:4].tolist(), values[0])

# Non-negative factorisation by multiplicative updates.
V = torch.rand(10, 8)
W, H = torch.rand(10, 3), torch.rand(3, 8)
for i in range(30):
    H *= (W.T @ V) / (W.T @ W @ H + 1e-9)
    W *= (V @ H.T) / (W @ H @ H.T + 1e-9)
    if i % 10 == 9:
        print(i, f"{torch.dist(V, W @ H).item():.5f}")

# Alternating least squares by gradient descent in double precision.
V = V.double()
U = torch.rand(10, 2, dtype=torch.float64, requires_grad=True)
M = torch.rand(2, 8, dtype=torch.double, requires_grad=True)
for _ in range(20):
    for p in (U, M):
        loss = (V - U @ M).pow(2).sum()
        (g,) = torch.autograd.grad(loss, p)
        with torch.no_grad():
            p.sub_(g, alpha=0.05)
print(f"{loss.item():.6f}", U.dtype, M.grad)
