# compat: rtol=1e-3 atol=1e-5 seconds=5 (many steps of float32 sums in another order)
"""Training stopped and continued from state dicts: the same losses as in one go."""

import copy

import torch
import torch.nn as nn
import torch.optim as optim


class TheModelClass(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 4, 3, padding=1, bias=False), nn.BatchNorm1d(4), nn.ReLU()
        )
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(4 * 8, 2))

    def forward(self, x):
        return self.classifier(torch.flatten(self.features(x), 1))


def make():
    torch.manual_seed(77)
    model = TheModelClass()
    optimizer = optim.Adam(model.parameters(), lr=1e-2, amsgrad=True)
    scheduler = optim.lr_scheduler.MultiStepLR(optimizer, milestones=[4, 8], gamma=0.5)
    return model, optimizer, scheduler


torch.manual_seed(0)
data = torch.randn(24, 1, 8)
labels = (data.mean((1, 2)) > 0).long()


def run(model, optimizer, scheduler, epochs):
    losses = []
    model.train()
    for _ in epochs:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(data), labels)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses


model, optimizer, scheduler = make()
whole = run(model, optimizer, scheduler, range(10))
print([f"{value:.4f}" for value in whole])

model, optimizer, scheduler = make()
first = run(model, optimizer, scheduler, range(5))
checkpoint = {
    "epoch": 5,
    "model_state_dict": copy.deepcopy(model.state_dict()),
    "optimizer_state_dict": copy.deepcopy(optimizer.state_dict()),
    "scheduler": scheduler.state_dict(),
    "rng": torch.get_rng_state(),
}
print("Model's state_dict:")
for name in model.state_dict():
    print(name, "\t", model.state_dict()[name].size())
print("Optimizer's state_dict:")
print(list(checkpoint["optimizer_state_dict"]["state"][0]))
print(checkpoint["optimizer_state_dict"]["param_groups"])

model, optimizer, scheduler = make()
print(model.load_state_dict(checkpoint["model_state_dict"]))
optimizer.load_state_dict(checkpoint["optimizer_state_dict"])
scheduler.load_state_dict(checkpoint["scheduler"])
torch.set_rng_state(checkpoint["rng"])
rest = run(model, optimizer, scheduler, range(checkpoint["epoch"], 10))
print("continued:", torch.allclose(torch.tensor(first + rest), torch.tensor(whole)))

# Part of a state into a model with another head.
other = TheModelClass()
other.classifier[1] = nn.Linear(4 * 8, 3)
pretrained = model.state_dict()
own = other.state_dict()
kept = {k: v for k, v in pretrained.items() if own[k].shape == v.shape}
print(sorted(set(pretrained) - set(kept)), other.load_state_dict(kept, strict=False))
try:
    other.load_state_dict(pretrained)
except RuntimeError as error:
    print(error)
same = [
    torch.equal(a, b) for a, b in zip(other.buffers(), model.buffers(), strict=True)
]
print(same)

model.eval()
twice = [model(data[:4]).sum().item() for _ in range(2)]
print(twice[0] == twice[1], f"{twice[0]:.4f}", model.features[1].running_var)
