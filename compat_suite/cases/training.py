# compat: rtol=1e-4 atol=1e-5 (twenty steps of float32 sums in another order)
"""A small network trained by each optimizer on shuffled mini-batches."""

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(40, 6)
labels = (inputs[:, 0] * inputs[:, 1] > 0).long()
data = TensorDataset(inputs, labels)

for make in (
    lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3),
    lambda p: optim.Adam(p, lr=0.01),
    lambda p: optim.AdamW(p, lr=0.01, amsgrad=True),
):
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
    optimizer = make(net.parameters())
    print(type(optimizer).__name__, list(optimizer.param_groups[0]))
    loader = DataLoader(data, batch_size=16, shuffle=True)
    for epoch in range(7):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            total += loss.item() * len(x)
        print(f"epoch {epoch}: loss {total / len(data):.5f}, norm {norm:.5f}")
    with torch.no_grad():
        accuracy = (net(inputs).argmax(1) == labels).float().mean()
    print(f"accuracy {accuracy:.3f}")
    state = optimizer.state_dict()["state"]
    print({key: sorted(value) for key, value in state.items()})
