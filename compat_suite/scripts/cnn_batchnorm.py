# compat: rtol=1e-3 atol=1e-4 seconds=16 (convolutions, sums in another order)
"""A small residual CNN on synthetic images: BatchNorm, pooling, StepLR and cosine."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import CosineAnnealingLR, StepLR
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(7)


class Bars(Dataset):
    """Noisy images with a horizontal, a vertical or a diagonal bar."""

    def __init__(self, n, size=10):
        self.images = 0.3 * torch.randn(n, 1, size, size)
        self.labels = torch.randint(0, 3, (n,))
        place = torch.randint(2, size - 2, (n,))
        for i in range(n):
            k = int(place[i])
            if self.labels[i] == 0:
                self.images[i, 0, k] += 1
            elif self.labels[i] == 1:
                self.images[i, 0, :, k] += 1
            else:
                self.images[i, 0] += torch.eye(size)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i], self.labels[i]


class BasicBlock(nn.Module):
    def __init__(self, in_planes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != planes:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_planes, planes, 1, stride, bias=False),
                nn.BatchNorm2d(planes),
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = BasicBlock(1, 6)
        self.pool = nn.MaxPool2d(2)
        self.block2 = BasicBlock(6, 8, stride=2)
        self.head = nn.Linear(8, 3)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = self.block2(self.pool(self.block(x)))
        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return F.log_softmax(self.head(x), dim=1)


def train(model, loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        if batch_idx == len(loader) - 1:
            print(f"Train Epoch: {epoch} Loss: {loss.item():.5f}")


def test(model, loader):
    model.eval()
    test_loss, correct = 0, 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    n = len(loader.dataset)
    print(f"Test: average loss {test_loss / n:.4f}, accuracy {correct}/{n}")


train_loader = DataLoader(Bars(64), batch_size=16, shuffle=True, drop_last=True)
test_loader = DataLoader(Bars(32), batch_size=32)
model = Net()
optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
for epoch in range(1, 4):
    train(model, train_loader, optimizer, epoch)
    test(model, test_loader)
    scheduler.step()
    print("lr", scheduler.get_last_lr())
print(model.block.bn1.running_mean, model.block.bn1.num_batches_tracked)

optimizer = optim.AdamW(model.parameters(), lr=1e-3)
scheduler = CosineAnnealingLR(optimizer, T_max=4)
for epoch in range(4, 6):
    train(model, train_loader, optimizer, epoch)
    scheduler.step()
test(model, test_loader)
