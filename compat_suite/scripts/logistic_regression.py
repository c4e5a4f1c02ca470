# compat: rtol=1e-3 atol=1e-5 seconds=4 (many steps of float32 sums in another order)
"""Logistic regression: nn.Module, BCEWithLogitsLoss, precision and recall."""

import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset, random_split


class LogisticRegression(nn.Module):
    def __init__(self, n_inputs, n_outputs):
        super().__init__()
        self.linear = nn.Linear(n_inputs, n_outputs)

    def forward(self, x):
        return self.linear(x)


torch.manual_seed(42)
X = torch.cat([torch.randn(60, 2) + 1.5, torch.randn(60, 2) - 1.0])
y = torch.cat([torch.ones(60), torch.zeros(60)]).unsqueeze(1)
mean, std = X.mean(dim=0, keepdim=True), X.std(dim=0, keepdim=True)
X = (X - mean) / std

train_set, test_set = random_split(TensorDataset(X, y), [96, 24])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
test_loader = DataLoader(test_set, batch_size=24)

model = LogisticRegression(2, 1)
print(model)
criterion = nn.BCEWithLogitsLoss()
optimizer = optim.SGD(model.parameters(), lr=0.5, momentum=0.5, weight_decay=1e-3)

for epoch in range(1, 11):
    model.train()
    running_loss = 0.0
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        running_loss += loss.item() * inputs.size(0)
    if epoch % 2 == 0:
        print(f"Epoch {epoch:2d}, loss: {running_loss / len(train_set):.4f}")

model.eval()
tp = fp = fn = tn = 0
with torch.no_grad():
    for inputs, targets in test_loader:
        predicted = (torch.sigmoid(model(inputs)) > 0.5).float()
        tp += (predicted * targets).sum().item()
        fp += (predicted * (1 - targets)).sum().item()
        fn += ((1 - predicted) * targets).sum().item()
        tn += ((1 - predicted) * (1 - targets)).sum().item()
print("confusion:", tp, fp, fn, tn)
print(f"precision {tp / (tp + fp):.3f} recall {tp / (tp + fn):.3f}")
for name, param in model.named_parameters():
    print(name, tuple(param.shape), param.data)

# Three classes by softmax, with class weights and label smoothing.
labels = (X[:, 0] > 0).long() + (X[:, 1] > 0.5).long()
softmax_model = LogisticRegression(2, 3)
criterion = nn.CrossEntropyLoss(
    weight=torch.tensor([1.0, 2.0, 1.5]), label_smoothing=0.1
)
optimizer = optim.Adam(softmax_model.parameters(), lr=0.1)
for _step in range(30):
    optimizer.zero_grad()
    loss = criterion(softmax_model(X), labels)
    loss.backward()
    optimizer.step()
probabilities = softmax_model(X).softmax(dim=1)
confidence, guess = probabilities.max(dim=1)
print(f"loss {loss.item():.4f}, accuracy {(guess == labels).float().mean():.3f}")
print(torch.bincount(guess, minlength=3), confidence.mean())
