# compat: rtol=1e-4 atol=1e-6 seconds=3 (a solver's rounding)
"""Weights that are orthogonal by construction, and weights that are cut away."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.utils.parametrize as parametrize
from torch.nn.utils import prune

torch.manual_seed(0)


class Skew(nn.Module):
    def forward(self, X):
        A = X.triu(1)
        return A - A.transpose(-1, -2)


class CayleyMap(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("Id", torch.eye(n))

    def forward(self, X):
        return torch.linalg.solve(self.Id - X, self.Id + X)

    def right_inverse(self, A):
        return torch.linalg.solve(A + self.Id, A - self.Id)


layer = nn.Linear(3, 3)
parametrize.register_parametrization(layer, "weight", Skew())
parametrize.register_parametrization(layer, "weight", CayleyMap(3))
X = layer.weight
print(torch.dist(X.T @ X, torch.eye(3)) < 1e-5)
with parametrize.cached():
    print(layer.weight is layer.weight)


# pruning tutorial
class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 3, 5)
        self.fc1 = nn.Linear(16, 6)
        self.fc2 = nn.Linear(6, 4)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


model = LeNet()
module = model.conv1
print([n for n, _ in module.named_parameters()], list(module.named_buffers()))
prune.random_unstructured(module, name="weight", amount=0.3)
print([n for n, _ in module.named_parameters()])
print([(n, b.sum()) for n, b in module.named_buffers()])
print(module.weight)
prune.l1_unstructured(module, name="bias", amount=1)
print(list(module.named_parameters()))
prune.ln_structured(module, name="weight", amount=0.5, n=2, dim=0)
print(module.weight[0, 0, 0])
for hook in module._forward_pre_hooks.values():
    if hook._tensor_name == "weight":
        break
print([type(h).__name__ for h in list(hook)])
print(sorted(model.state_dict().keys()))
prune.remove(module, "weight")
print([n for n, _ in module.named_parameters()])
new_model = LeNet()
for _name, module in new_model.named_modules():
    if isinstance(module, torch.nn.Conv2d):
        prune.l1_unstructured(module, name="weight", amount=0.2)
    elif isinstance(module, torch.nn.Linear):
        prune.l1_unstructured(module, name="weight", amount=0.4)
print(dict(new_model.named_buffers()).keys())
model = LeNet()
parameters_to_prune = (
    (model.conv1, "weight"),
    (model.fc1, "weight"),
    (model.fc2, "weight"),
)
prune.global_unstructured(
    parameters_to_prune, pruning_method=prune.L1Unstructured, amount=0.2
)
print(
    "Sparsity in conv1.weight: {:.2f}%".format(
        100.0
        * float(torch.sum(model.conv1.weight == 0))
        / float(model.conv1.weight.nelement())
    )
)


class FooBarPruningMethod(prune.BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        mask = default_mask.clone()
        mask.view(-1)[::2] = 0
        return mask


def foobar_unstructured(module, name):
    FooBarPruningMethod.apply(module, name)
    return module


model = LeNet()
foobar_unstructured(model.fc2, name="bias")
print(model.fc2.bias_mask)
