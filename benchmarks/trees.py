"""Training on trees, each of another structure. For orientation, without a goal."""

import random
import time

from ._case import Case, torch_api

TREES, HIDDEN, WORDS = 60, 16, 50


def tree(numbers, depth):
    """(word, children): a random tree."""
    count = 0 if depth == 0 else numbers.randrange(4)
    word = numbers.randrange(WORDS)
    return word, [tree(numbers, depth - 1) for _ in range(count)]


def torch_program(torch, epochs):
    nn = torch.nn

    class TreeLSTM(nn.Module):
        """Child-sum Tree-LSTM (Tai et al., 2015), a node at a time."""

        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(WORDS, HIDDEN)
            self.gates = nn.Linear(2 * HIDDEN, 3 * HIDDEN)
            self.forget = nn.Linear(2 * HIDDEN, HIDDEN)
            self.out = nn.Linear(HIDDEN, 2)

        def node(self, tree):
            word, children = tree
            x = self.embedding(torch.tensor([word]))
            below = [self.node(child) for child in children]
            none = [(torch.zeros(1, HIDDEN), torch.zeros(1, HIDDEN))]
            h, c = (torch.cat(parts) for parts in zip(*(below or none), strict=True))
            gates = self.gates(torch.cat([x, h.sum(0, keepdim=True)], 1))
            i, o, u = gates.chunk(3, 1)
            f = torch.sigmoid(self.forget(torch.cat([x.expand(len(h), -1), h], 1)))
            cell = torch.sigmoid(i) * torch.tanh(u) + (f * c).sum(0, keepdim=True)
            return torch.sigmoid(o) * torch.tanh(cell), cell

        def forward(self, tree):
            return self.out(self.node(tree)[0])

    def sample():
        numbers = random.Random(0)
        torch.manual_seed(0)
        trees = [tree(numbers, 3) for _ in range(TREES)]
        model, loss_function = TreeLSTM(), nn.CrossEntropyLoss()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        start = time.perf_counter()
        for _ in range(epochs):
            for each in trees:
                optimizer.zero_grad()
                loss = loss_function(model(each), torch.tensor([each[0] % 2]))
                loss.backward()
                optimizer.step()
                loss.item()
        return time.perf_counter() - start

    return sample


CASES = [
    Case(
        name=f"{TREES} trees, {epochs} time{'s' * (epochs > 1)}, compiling included",
        unit="s",
        engines=torch_api(torch_program, epochs),
        fresh=True,
        rounds=3,
    )
    for epochs in (1, 10)
]
