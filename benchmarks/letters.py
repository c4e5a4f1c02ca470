"""Writing letter by letter: a sequence that grows. For orientation, without a goal."""

import time

from ._case import Case, torch_api

LETTERS, VOCABULARY, WIDTH, HEADS, LAYERS = 64, 65, 128, 4, 4


def torch_program(torch, cached):
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.norms = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(2)])
            self.mlp = nn.Sequential(
                nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
            )

        def forward(self, x, past):
            batch, length, _ = x.shape
            parts = self.qkv(self.norms[0](x)).chunk(3, -1)
            shape = batch, length, HEADS, WIDTH // HEADS
            q, k, v = (part.view(shape).transpose(1, 2) for part in parts)
            if past is not None:
                k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
            seen = k.shape[2]
            mask = torch.ones(length, seen).tril(seen - length)
            weights = (q @ k.mT / shape[-1] ** 0.5).masked_fill(mask == 0, -1e9)
            mixed = (F.softmax(weights, -1) @ v).transpose(1, 2).reshape(x.shape)
            x = x + self.out(mixed)
            return x + self.mlp(self.norms[1](x)), (k, v)

    class Writer(nn.Module):
        def __init__(self):
            super().__init__()
            self.letters = nn.Embedding(VOCABULARY, WIDTH)
            self.places = nn.Embedding(2 * LETTERS, WIDTH)
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)

        def forward(self, text, start, past):
            x = self.letters(text)
            x = x + self.places(torch.arange(start, start + text.shape[1]))
            kept = []
            for block, before in zip(self.blocks, past, strict=True):
                x, now = block(x, before)
                kept.append(now)
            return self.head(self.norm(x))[:, -1], kept

    def write(model):
        text = new = torch.zeros((1, 1), dtype=torch.long)
        past = [None] * LAYERS
        for place in range(LETTERS):
            given = (new, place, past) if cached else (text, 0, [None] * LAYERS)
            scores, kept = model(*given)
            past = kept if cached else past
            new = torch.multinomial(F.softmax(scores, -1), 1)
            text = torch.cat([text, new], 1)
        return text.tolist()

    def sample():
        torch.manual_seed(0)
        model = Writer().eval()
        start = time.perf_counter()
        with torch.no_grad():
            write(model)
        return time.perf_counter() - start

    return sample


CASES = [
    Case(
        name=f"{LETTERS} letters, {what}, compiling included",
        unit="s",
        engines=torch_api(torch_program, cached),
        fresh=True,
        rounds=3,
    )
    for what, cached in (("all of the text each time", False), ("keys cached", True))
]
