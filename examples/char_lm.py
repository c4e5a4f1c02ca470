"""A language model that writes one character at a time.

A small network reads ten characters and learns the next one (Bengio et al., 2003).
"""

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

CONTEXT = 10
STORY = (Path(__file__).parent / "data" / "lighthouse.txt").read_text()
LETTERS = sorted(set(STORY))


class Model(nn.Module):
    def __init__(self, letters, width=16, hidden=128):
        super().__init__()
        self.embed = nn.Embedding(letters, width)
        self.hidden = nn.Linear(CONTEXT * width, hidden)
        self.scores = nn.Linear(hidden, letters)

    def forward(self, context):
        return self.scores(torch.tanh(self.hidden(self.embed(context).flatten(1))))


@torch.no_grad()
def write(model, start, length):
    """Continue `start`, drawing each character with the chance the model gives it."""
    text = [LETTERS.index(letter) for letter in start]
    for _ in range(length):
        chances = F.softmax(model(torch.tensor([text[-CONTEXT:]])), dim=1)
        # Each character has a piece of [0, 1) as long as its chance.
        letter = (chances.cumsum(dim=1)[:, :-1] < torch.rand(1)).sum()
        text.append(letter.item())
    return "".join(LETTERS[letter] for letter in text)


parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--steps", type=int, default=800)
options = parser.parse_args()

torch.manual_seed(0)
story = torch.tensor([LETTERS.index(letter) for letter in STORY])
# Every window of CONTEXT characters, and the character that follows it.
windows, targets = story.unfold(0, CONTEXT, 1)[:-1], story[CONTEXT:]
model = Model(len(LETTERS))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(options.steps + 1):
    batch = torch.randint(len(windows), (64,))
    loss = F.cross_entropy(model(windows[batch]), targets[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % max(options.steps // 10, 1) == 0:
        print(f"step {step:5}  loss {loss.item():.4f}")
print(write(model, "The keeper of ", 300))
