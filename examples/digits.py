"""Train a small convolutional network to read handwritten digits.

    python examples/digits.py                  with PyTorch
    python -m torchshim examples/digits.py     the same file, on JAX

The data are 1,797 images of 8x8 pixels (see data/README.md). A fifth of them is held
out; the network ends at about 99 % on those.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

DATA = Path(__file__).parent / "data" / "digits.npz"


class ConvNet(nn.Module):
    """Two convolutions, one pooling, two linear layers: an 8x8 image to 10 scores."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, kernel_size=3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Conv2d(32, 64, kernel_size=3, padding=1),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Linear(64 * 4 * 4, 64),
            nn.ReLU(),
            nn.Linear(64, 10),
        )

    def forward(self, images):
        return self.classifier(self.features(images).flatten(1))


def load_digits():
    """The images for training and those for the test, split at random, 4 to 1."""
    with np.load(DATA) as file:
        # Pixels count from 0 to 16; networks like numbers between 0 and 1.
        images = torch.from_numpy(file["images"]).float().unsqueeze(1) / 16
        labels = torch.from_numpy(file["labels"]).long()
    order = torch.randperm(len(images))
    test, train = order[: len(order) // 5], order[len(order) // 5 :]
    return (
        TensorDataset(images[train], labels[train]),
        TensorDataset(images[test], labels[test]),
    )


class Progress:
    """One line an epoch; on a terminal it also moves while the epoch runs."""

    def __init__(self, epochs):
        self.epochs = epochs
        self.live = sys.stdout.isatty()
        self.shown = 0.0

    def start(self, epoch):
        self.epoch, self.images, self.began = epoch, 0, time.perf_counter()

    def update(self, images, loss):
        self.images += images
        now = time.perf_counter()
        if self.live and now - self.shown > 0.1:
            self.shown = now
            print(f"\r{self.line(loss)}", end="", flush=True)

    def finish(self, loss):
        print(("\r" if self.live else "") + self.line(loss), flush=True)

    def line(self, loss):
        speed = self.images / (time.perf_counter() - self.began)
        width = len(str(self.epochs))
        epoch = f"epoch {self.epoch:{width}}/{self.epochs}"
        return f"{epoch}  loss {loss:.4f}  {speed:8,.0f} images/s"


def train(model, data, epochs, batch_size, lr):
    """Minimise the cross-entropy with Adam; the learning rate falls to zero."""
    loader = DataLoader(data, batch_size=batch_size, shuffle=True)
    loss_function = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    progress = Progress(epochs)
    steps = epochs * len(loader)
    step = 0

    model.train()
    for epoch in range(1, epochs + 1):
        progress.start(epoch)
        total = 0.0
        for images, labels in loader:
            for group in optimizer.param_groups:
                group["lr"] = lr * (1 - step / steps)
            loss = loss_function(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

            step += 1
            total += loss.item() * len(labels)
            progress.update(len(labels), total / (progress.images + len(labels)))
        progress.finish(total / len(data))


@torch.no_grad()
def accuracy(model, data, batch_size=256):
    """The share of the images whose highest score is at the right digit."""
    model.eval()
    correct = 0
    for images, labels in DataLoader(data, batch_size=batch_size):
        correct += (model(images).argmax(dim=1) == labels).sum().item()
    return correct / len(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    training, test = load_digits()
    model = ConvNet()
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{len(training)} images to learn from, {len(test)} held out")
    print(f"a network of {parameters:,} parameters")

    began = time.perf_counter()
    train(model, training, options.epochs, options.batch_size, options.lr)
    print(f"trained in {time.perf_counter() - began:.1f} s")
    print(f"test accuracy {accuracy(model, test):.2%}")


if __name__ == "__main__":
    main()
