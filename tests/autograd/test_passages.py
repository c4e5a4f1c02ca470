"""Backward through turns that each read a value, in loops of many lengths.

Such walks go through one recording for each turn (`_core/passages.py`).
"""

from __future__ import annotations

import itertools

import pytest

from tests.oracle import attempt, case

LENGTHS = (2, 3, 4, 5, 6, 4, 7, 3, 8, 5)


def net(torch, *sizes):
    """Layers with weights that are the same on both sides."""
    layers = []
    for n, (a, b) in enumerate(itertools.pairwise(sizes)):
        layer = torch.nn.Linear(a, b, dtype=torch.float64)
        with torch.no_grad():
            for k, p in enumerate(layer.parameters()):
                values = torch.arange(p.numel()).double().reshape(p.shape)
                p.copy_((values * (n + 2) + k).sin() / 2)
        layers += [layer, torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1])


class Player:
    """Plays episodes, and learns from each as a whole."""

    def __init__(self, torch, turn=None):
        self.torch = torch
        self.policy = net(torch, 3, 5, 2)
        self.optimizer = torch.optim.SGD(self.policy.parameters(), lr=0.05)
        self.turn = turn

    def play(self, length):
        torch = self.torch
        kept = []
        for t in range(length):
            state = torch.tensor([[0.1 * t, 0.3 - t, 0.5]], dtype=torch.float64)
            scores = self.policy(state).log_softmax(1)
            if self.turn is not None:
                self.turn(self, t, scores)
            action = int(scores[0, 0].item() < scores[0, 1].item())
            kept.append(scores[:, action])
        return kept

    def loss(self, kept):
        torch = self.torch
        returns = torch.tensor(
            [0.9**k + 0.1 * k for k in range(len(kept))], dtype=torch.float64
        )
        returns = (returns - returns.mean()) / (returns.std() + 0.1)
        found = [-each * r for each, r in zip(kept, returns, strict=True)]
        return torch.cat(found).sum()

    def learn(self, length):
        loss = self.loss(self.play(length))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def grads(self):
        return [p.grad.clone() for p in self.policy.parameters()]


@case
def episodes(torch):
    player = Player(torch)
    for length in LENGTHS:
        yield player.learn(length)
    yield [*player.policy.parameters()], player.grads()


@case
def gradients_are_added(torch):
    """To what `.grad` holds, and again where the graph is kept."""
    player = Player(torch)
    for length in LENGTHS:
        loss = player.loss(player.play(length))
        loss.backward(retain_graph=length % 2 == 0)
        if length % 2 == 0:
            loss.backward()
        yield attempt(loss.backward)
        yield player.grads()


@case
def a_state_is_handed_on(torch):
    """Gradients flow from turn to turn, too."""
    cell, head = net(torch, 6, 4), net(torch, 4, 1)
    for length in LENGTHS:
        hidden, losses = torch.zeros(1, 4, dtype=torch.float64), []
        for t in range(length):
            x = torch.tensor([[0.2 * t, 1.0]], dtype=torch.float64)
            hidden = cell(torch.cat((x, hidden), 1)).tanh()
            value = head(hidden)
            losses.append((value - value.item() * 0.5).square())
        targets = torch.tensor([0.1 * t for t in range(length)], dtype=torch.float64)
        total = sum(each * r for each, r in zip(losses, targets, strict=True)).sum()
        total.backward()
        yield total, [p.grad.clone() for p in (*cell.parameters(), *head.parameters())]


@case
def values_shared_by_turns(torch):
    """What is computed once, and read, is part of each turn's graph."""
    player = Player(torch)
    scale = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    for length in LENGTHS:
        shared = (scale * 3).exp()
        shared.item()
        kept = [each * shared for each in player.play(length)]
        player.loss(kept).backward()
        yield scale.grad.clone(), player.grads()


@case
def states_detached_in_place(torch):
    cell = net(torch, 6, 4)
    for length in LENGTHS:
        hidden, losses = torch.zeros(1, 4, dtype=torch.float64), []
        for t in range(length):
            x = torch.tensor([[0.2 * t, 1.0]], dtype=torch.float64)
            hidden = cell(torch.cat((x, hidden), 1)).tanh()
            losses.append(hidden.sum() - hidden[0, 0].item())
            if t % 3 == 1:
                hidden.detach_()
        targets = torch.tensor([0.1 * t for t in range(length)], dtype=torch.float64)
        total = sum(each * r for each, r in zip(losses, targets, strict=True))
        yield attempt(total.backward)
        yield total, [None if p.grad is None else p.grad + 0 for p in cell.parameters()]


@case
def hooks_in_some_turns(torch):
    told = []

    def turn(player, t, scores):
        if t == 1:
            scores.register_hook(lambda g: told.append(t) or g * 2)
        if t == 2:
            scores.retain_grad()
            player.retained = scores

    player = Player(torch, turn)
    for length in LENGTHS:
        player.learn(length)
        yield list(told), player.retained.grad if length > 2 else None, player.grads()
    handle = player.policy[0].weight.register_hook(lambda g: told.append("w") or g / 2)
    for length in LENGTHS:
        player.learn(length)
        yield list(told), player.grads()
    handle.remove()
    later = player.policy[0].bias
    later.register_post_accumulate_grad_hook(
        lambda p: told.append(p.grad[0].item() > 0)
    )
    for length in LENGTHS:
        player.learn(length)
    yield told, player.grads()


@case(warnings=False)
def turns_looked_at(torch):
    """In anomaly mode, and by the profiler, each gradient's event is seen."""
    player = Player(torch)
    for n, length in enumerate(LENGTHS):
        if n % 3 == 2:
            with torch.autograd.detect_anomaly():
                player.learn(length)
        elif n % 3 == 1:
            with torch.autograd.profiler.profile() as profile:
                player.learn(length)
            names = [event.name for event in profile.function_events]
            yield sum("TanhBackward0" in name for name in names) >= length
        else:
            player.learn(length)
        yield player.grads()


@case
def custom_functions_in_some_turns(torch):
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2 + 0.1

    def turn(player, t, scores):
        if t == 2:
            player.extra = Doubled.apply(scores)

    player = Player(torch, turn)
    for length in LENGTHS:
        kept = player.play(length)
        if length > 2:
            kept.append(player.extra[:, 0])
        player.optimizer.zero_grad()
        player.loss(kept).backward()
        player.optimizer.step()
        yield player.grads()


@case
def values_written_to_between(torch):
    """An in-place change of what a turn saved is an error, whichever turn it was."""

    def turn(player, t, scores):
        if t == 1:
            player.saved = scores.exp()
            player.product = player.saved.square()

    player = Player(torch, turn)
    for n, length in enumerate(LENGTHS):
        kept = player.play(length)
        if length > 1:
            kept.append(player.product[:, 0])
        if n % 3 == 2:
            with torch.no_grad():
                player.saved.mul_(2)
        player.optimizer.zero_grad()
        yield attempt(player.loss(kept).backward)
        with torch.no_grad():
            player.policy[0].weight.mul_(0.9)


@case
def weights_replaced_between(torch):
    player = Player(torch)
    weight = player.policy[2].weight
    for n, length in enumerate(LENGTHS):
        loss = player.loss(player.play(length))
        if n % 3 == 2:
            with torch.no_grad():
                weight.add_(0.1)
        if n == 4:
            weight.requires_grad_(False)
        player.optimizer.zero_grad()
        try:
            loss.backward()
        except RuntimeError as error:  # (the text names a transposed weight)
            yield "modified by an inplace operation" in str(error)
        if n == 4:
            yield weight.grad
            weight.requires_grad_()
        player.optimizer.step()
    yield [*player.policy.parameters()]


@case
def some_gradients_alone(torch):
    player = Player(torch)
    weights = [player.policy[0].weight, player.policy[2].bias]
    for n, length in enumerate(LENGTHS):
        loss = player.loss(player.play(length))
        if n % 3 == 0:
            yield torch.autograd.grad(loss, weights)
        elif n % 3 == 1:
            loss.backward(inputs=weights)
        else:
            (norm,) = torch.autograd.grad(loss, weights[:1], create_graph=True)
            norm.square().sum().backward()
        yield [None if p.grad is None else p.grad.clone() for p in weights]


def test_passages_are_repeated(monkeypatch):
    import torchshim as torch
    from torchshim._core import passages

    repeated = []
    repeat = passages.Passages._repeat
    monkeypatch.setattr(
        passages.Passages,
        "_repeat",
        lambda self, *args: repeated.append(found := repeat(self, *args)) or found,
    )
    monkeypatch.setattr(passages, "_MANY", 0)
    player = Player(torch)
    for length in (11, 12, 13):
        player.learn(length)
    repeated.clear()
    player.learn(14)
    # All turns but the first and the last that are gone through.
    assert repeated.count(True) >= 12


@pytest.mark.parametrize("bound", [50, 200])
def test_branches_that_are_forgotten_are_not_repeated(monkeypatch, bound):
    import torchshim as torch
    from torchshim._core import trie

    def grads(n):
        player, found = Player(torch), []
        for length in LENGTHS[:n]:
            found.append(player.learn(length))
        return found

    expected = grads(len(LENGTHS))
    monkeypatch.setattr(trie, "STATE_BOUND", bound)
    assert grads(len(LENGTHS)) == pytest.approx(expected, rel=1e-4)


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize(
    "run",
    [
        gradients_are_added,
        a_state_is_handed_on,
        values_shared_by_turns,
        states_detached_in_place,
        turns_looked_at,
        hooks_in_some_turns,
        custom_functions_in_some_turns,
        values_written_to_between,
        weights_replaced_between,
        some_gradients_alone,
    ],
    ids=lambda run: run.__name__,
)
def test_walks_that_are_new_give_the_same(monkeypatch, run):
    """By passages from the second recording on, and as one walk each."""
    import torchshim as torch
    from torchshim._core import passages

    def flat(found):
        if isinstance(found, torch.Tensor):
            found = found.tolist()
        if isinstance(found, list | tuple):
            return [each for item in found for each in flat(item)]
        return [float(found) if isinstance(found, float | int) else str(found)]

    found = []
    for many in 0, 10_000:
        monkeypatch.setattr(passages, "_MANY", many)
        found.append(flat(list(run(torch))))
    assert len(found[0]) == len(found[1])
    for one, other in zip(*found, strict=True):
        assert one == (pytest.approx(other) if isinstance(other, float) else other)
