# compat: rtol=1e-3 atol=1e-5 seconds=5 (many steps of float32 sums in another order)
"""Linear regression from scratch: parameters updated by hand under no_grad."""

import torch

torch.manual_seed(1)

# y = Xw + b + noise
true_w = torch.tensor([2.0, -3.4, 0.7])
true_b = 4.2
X = torch.normal(0, 1, (120, len(true_w)))
y = torch.matmul(X, true_w) + true_b
y += torch.normal(0, 0.01, y.shape)
print("features:", X[0], "\nlabel:", y[0])

w = torch.normal(0, 0.01, size=(3, 1), requires_grad=True)
b = torch.zeros(1, requires_grad=True)


def data_iter(batch_size, features, labels):
    indices = torch.randperm(len(features))
    for i in range(0, len(features), batch_size):
        batch = indices[i : min(i + batch_size, len(features))]
        yield features[batch], labels[batch]


def linreg(X, w, b):
    return torch.matmul(X, w) + b


def squared_loss(y_hat, y):
    return (y_hat - y.reshape(y_hat.shape)) ** 2 / 2


def sgd(params, lr, batch_size):
    with torch.no_grad():
        for param in params:
            param -= lr * param.grad / batch_size
            param.grad.zero_()


lr, num_epochs, batch_size = 0.1, 5, 20
for epoch in range(num_epochs):
    for features, labels in data_iter(batch_size, X, y):
        loss = squared_loss(linreg(features, w, b), labels)
        loss.sum().backward()
        sgd([w, b], lr, batch_size)
    with torch.no_grad():
        train_l = squared_loss(linreg(X, w, b), y)
        print(f"epoch {epoch + 1}, loss {float(train_l.mean()):f}")

print(f"error in estimating w: {true_w - w.reshape(true_w.shape)}")
print(f"error in estimating b: {true_b - b}")

# The same with the bias as a column of ones, against the normal equations.
ones = torch.ones(len(X), 1)
design = torch.cat((X, ones), dim=1)
theta = torch.zeros(4, requires_grad=True)
for step in range(40):
    loss = ((design @ theta - y) ** 2).mean()
    (grad,) = torch.autograd.grad(loss, theta)
    theta.data.add_(grad, alpha=-0.2)
    if step % 10 == 9:
        print(step, f"{loss.item():.5f}")
residual = design.t() @ (design @ theta.detach() - y)
print(theta, residual.abs().max() < 1.0)
