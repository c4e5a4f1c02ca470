"""Training where each step has other sizes. For orientation, without a goal."""

import random
import time

from ._case import Case, torch_api

STEPS, HOT = 100, 40


def sentences(torch, numbers):
    """A small transformer; each batch is as long as its longest sentence."""
    nn, F = torch.nn, torch.nn.functional
    words, head = nn.Embedding(50, 16), nn.Linear(16, 3)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 1)
    model = nn.ModuleList([words, encoder, head])
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)

    def step():
        shape = numbers.randint(2, 9), numbers.randint(3, 40)
        text, labels = torch.randint(0, 50, shape), torch.randint(0, 3, shape[:1])
        missing = torch.rand(shape) < 0.1
        missing[:, 0] = False
        there = ~missing.unsqueeze(-1)
        x = encoder(words(text), src_key_padding_mask=missing)
        mean = (x * there).sum(1) / there.sum(1)
        loss = F.cross_entropy(head(mean), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def packed_sentences(torch, numbers):
    """A GRU over packed sequences."""
    nn = torch.nn
    gru, head = nn.GRU(6, 12, batch_first=True), nn.Linear(12, 4)
    optimizer = torch.optim.RMSprop([*gru.parameters(), *head.parameters()])

    def step():
        lengths = sorted((numbers.randint(2, 20) for _ in range(4)), reverse=True)
        packed = nn.utils.rnn.pack_sequence([torch.randn(n, 6) for n in lengths])
        made, _ = nn.utils.rnn.pad_packed_sequence(gru(packed)[0], batch_first=True)
        loss = head(made).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def boxes(torch, numbers):
    """A detector's loss: as many boxes as there are, matched with those labelled."""
    nn, F = torch.nn, torch.nn.functional
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 9))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)

    def area(box):
        return (box[..., 2:] - box[..., :2]).clamp(min=0).prod(-1)

    def step():
        out = model(torch.rand(numbers.randint(3, 60), 8))
        labelled = torch.rand(numbers.randint(1, 9), 4).sort(-1).values
        box, scores = out[:, :4].sigmoid(), out[:, 4:]
        low = torch.max(box[:, None, :2], labelled[None, :, :2])
        high = torch.min(box[:, None, 2:], labelled[None, :, 2:])
        both = (high - low).clamp(min=0).prod(-1)
        overlap = both / (area(box)[:, None] + area(labelled) - both + 1e-6)
        best, which = overlap.max(1)
        chosen = best > best.median()
        loss = F.cross_entropy(scores, chosen.long())
        loss = loss + F.smooth_l1_loss(box[chosen], labelled[which[chosen]])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step


def graphs(torch, numbers):
    """Messages along the edges of graphs."""
    nn, F = torch.nn, torch.nn.functional
    first, second = nn.Linear(5, 16), nn.Linear(16, 2)
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], 0.01)

    def step():
        nodes, edges = numbers.randint(4, 30), numbers.randint(5, 80)
        x = torch.randn(nodes, 5)
        source, target = torch.randint(0, nodes, (2, edges))
        degree = torch.zeros(nodes).index_add_(0, target, torch.ones(edges))
        sums = torch.zeros(nodes, 16).index_add(0, target, first(x)[source])
        hidden = F.elu(sums / degree.clamp(min=1)[:, None])
        where = target[:, None].expand(-1, 2)
        scores = torch.zeros(nodes, 2).scatter_add(0, where, second(hidden)[source])
        loss = F.cross_entropy(scores, torch.randint(0, 2, (nodes,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def images(torch, numbers):
    """A convolutional network; images of other heights and widths in each batch."""
    nn, F = torch.nn, torch.nn.functional
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    )
    optimizer = torch.optim.Adam(model.parameters())

    def step():
        count, height, width = (numbers.randint(*r) for r in ((2, 5), (8, 20), (8, 20)))
        x = torch.randn(count, 3, height, width)
        x = F.interpolate(x, scale_factor=1.5, mode="bilinear")
        loss = F.cross_entropy(model(x), torch.randint(0, 4, (count,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def torch_program(torch, program, hot):
    def sample():
        torch.manual_seed(0)
        step = program(torch, random.Random(0))
        for _ in range(STEPS - HOT if hot else 0):
            step()
        start = time.perf_counter()
        for _ in range(HOT if hot else STEPS):
            step()
        took = time.perf_counter() - start
        return took / HOT * 1e3 if hot else took

    return sample


CASES = [
    Case(
        name=program.__name__.replace("_", " ") + what,
        unit=unit,
        engines=torch_api(torch_program, program, hot),
        fresh=True,
        rounds=3,
    )
    for program in (sentences, packed_sentences, boxes, graphs, images)
    for what, unit, hot in (
        (f", {STEPS} steps, compiling included", "s", False),
        (f", the last {HOT} of them", "ms", True),
    )
]
