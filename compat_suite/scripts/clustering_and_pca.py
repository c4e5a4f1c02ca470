# compat: rtol=1e-3 atol=1e-4 seconds=7 (float32 sums in another order)
"""k-means, PCA by power iteration, k nearest neighbours and k-means++ with tensors."""

import torch

torch.manual_seed(4)
centres = torch.tensor([[0.0, 0, 0, 0], [4, 4, 0, 0], [0, 4, 4, 1]])
labels = torch.arange(3).repeat_interleave(30)
X = centres[labels] + 0.5 * torch.randn(90, 4)
shuffle = torch.randperm(90)
X, labels = X[shuffle], labels[shuffle]


def kmeans_plus_plus(x, k):
    chosen = [x[torch.randint(len(x), (1,)).item()]]
    for _ in range(k - 1):
        distance = torch.cdist(x, torch.stack(chosen)).min(dim=1).values ** 2
        index = torch.multinomial(distance / distance.sum(), 1).item()
        chosen.append(x[index])
    return torch.stack(chosen)


def kmeans(x, k, iterations=20):
    c = kmeans_plus_plus(x, k)
    step = 0
    while step < iterations:
        distance = ((x[:, None, :] - c[None, :, :]) ** 2).sum(-1)
        assign = distance.argmin(dim=1)
        new = torch.zeros_like(c).scatter_add_(
            0, assign[:, None].repeat(1, x.shape[1]), x
        )
        new /= torch.bincount(assign, minlength=k).type_as(c).view(k, 1).clamp_(min=1)
        if torch.allclose(new, c, atol=1e-5):
            break
        c, step = new, step + 1
    inertia = distance.gather(1, assign.unsqueeze(1)).sum()
    return assign, c, inertia, step


assign, c, inertia, iterations = kmeans(X, 3)
print("inertia", f"{inertia.item():.4f}", "after", iterations)
order = c[:, 2].mul(10).add(c[:, 0]).argsort()
print(c[order])
table = torch.zeros(3, 3, dtype=torch.int64)
table.index_put_((labels, assign), torch.ones(90, dtype=torch.int64), accumulate=True)
print(table[:, order])


def pca(x, n):
    x = x - x.mean(0)
    covariance = x.T @ x / (len(x) - 1)
    components, values = [], []
    for _ in range(n):
        v = torch.ones(x.shape[1]) / x.shape[1] ** 0.5
        for _ in range(50):
            v = covariance @ v
            v = v / v.norm()
        value = v @ covariance @ v
        covariance = covariance - value * torch.outer(v, v)
        components.append(v)
        values.append(value)
    return torch.stack(components), torch.stack(values)


components, values = pca(X, 2)
projected = (X - X.mean(0)) @ components.T
print("explained", values / X.var(dim=0).sum())
print("components", components.abs())
print("orthogonal", (components @ components.T - torch.eye(2)).abs().max() < 1e-3)
print("variance", projected.var(dim=0), torch.cov(projected.T).diagonal())


def knn(train, target, query, k):
    distance = torch.cdist(query, train)
    nearest = distance.topk(k, largest=False, sorted=True).indices
    return target[nearest].mode(dim=1).values


guess = knn(X[:60], labels[:60], X[60:], 5)
print("knn accuracy", (guess == labels[60:]).sum().item(), "/ 30")
print(
    "silhouette-like",
    torch.stack(
        [
            torch.cdist(X[assign == a], X[assign == b]).mean()
            for a in order
            for b in order
        ]
    ).view(3, 3),
)
quantiles = torch.quantile(X[:, 0], torch.tensor([0.1, 0.5, 0.9]))
print("quantiles", quantiles, X.median(dim=0).values, torch.histc(X, bins=5))
