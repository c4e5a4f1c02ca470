# compat: rtol=1e-4 atol=1e-6 seconds=14 (the order of sums in float32)
"""A conditional random field over a bidirectional GRU tags padded sequences."""

import torch
import torch.nn as nn

torch.manual_seed(3)


class CRF(nn.Module):
    def __init__(self, num_tags: int, batch_first: bool = False) -> None:
        if num_tags <= 0:
            raise ValueError(f"invalid number of tags: {num_tags}")
        super().__init__()
        self.num_tags = num_tags
        self.batch_first = batch_first
        self.start_transitions = nn.Parameter(torch.empty(num_tags))
        self.end_transitions = nn.Parameter(torch.empty(num_tags))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.uniform_(self.start_transitions, -0.1, 0.1)
        nn.init.uniform_(self.end_transitions, -0.1, 0.1)
        nn.init.uniform_(self.transitions, -0.1, 0.1)

    def __repr__(self):
        return f"{self.__class__.__name__}(num_tags={self.num_tags})"

    def forward(self, emissions, tags, mask=None, reduction="sum"):
        if reduction not in ("none", "sum", "mean", "token_mean"):
            raise ValueError(f"invalid reduction: {reduction}")
        if mask is None:
            mask = torch.ones_like(tags, dtype=torch.uint8, device=tags.device)
        if self.batch_first:
            emissions = emissions.transpose(0, 1)
            tags = tags.transpose(0, 1)
            mask = mask.transpose(0, 1)
        if mask.dtype != torch.uint8:
            mask = mask.byte()
        if not mask[0].all():
            raise ValueError("mask of the first timestep must all be on")
        llh = self._compute_score(emissions, tags, mask) - self._compute_normalizer(
            emissions, mask
        )
        if reduction == "none":
            return llh
        if reduction == "sum":
            return llh.sum()
        if reduction == "mean":
            return llh.mean()
        return llh.sum() / mask.float().sum()

    def _compute_score(self, emissions, tags, mask):
        seq_length, batch_size = tags.shape
        mask = mask.float()
        score = self.start_transitions[tags[0]]
        score += emissions[0, torch.arange(batch_size), tags[0]]
        for i in range(1, seq_length):
            score += self.transitions[tags[i - 1], tags[i]] * mask[i]
            score += emissions[i, torch.arange(batch_size), tags[i]] * mask[i]
        seq_ends = mask.long().sum(dim=0) - 1
        last_tags = tags[seq_ends, torch.arange(batch_size)]
        score += self.end_transitions[last_tags]
        return score

    def _compute_normalizer(self, emissions, mask):
        seq_length = emissions.size(0)
        score = self.start_transitions + emissions[0]
        for i in range(1, seq_length):
            next_score = (
                score.unsqueeze(2) + self.transitions + emissions[i].unsqueeze(1)
            )
            next_score = torch.logsumexp(next_score, dim=1)
            score = torch.where(mask[i].bool().unsqueeze(1), next_score, score)
        score += self.end_transitions
        return torch.logsumexp(score, dim=1)

    def decode(self, emissions, mask):
        if self.batch_first:
            emissions, mask = emissions.transpose(0, 1), mask.transpose(0, 1)
        seq_length, batch_size = mask.shape
        score = self.start_transitions + emissions[0]
        history = []
        for i in range(1, seq_length):
            next_score, indices = (
                score.unsqueeze(2) + self.transitions + emissions[i].unsqueeze(1)
            ).max(dim=1)
            score = torch.where(mask[i].bool().unsqueeze(1), next_score, score)
            history.append(indices)
        score += self.end_transitions
        seq_ends = mask.long().sum(dim=0) - 1
        best_tags_list = []
        for idx in range(batch_size):
            _, best_last_tag = score[idx].max(dim=0)
            best_tags = [best_last_tag.item()]
            for hist in reversed(history[: seq_ends[idx]]):
                best_last_tag = hist[idx][best_tags[-1]]
                best_tags.append(best_last_tag.item())
            best_tags.reverse()
            best_tags_list.append(best_tags)
        return best_tags_list


class Tagger(nn.Module):
    def __init__(self, vocab, tags):
        super().__init__()
        self.emb = nn.Embedding(vocab, 8, padding_idx=0)
        self.gru = nn.GRU(8, 8, batch_first=True, bidirectional=True)
        self.out = nn.Linear(16, tags)
        self.crf = CRF(tags, batch_first=True)

    def forward(self, x, lens):
        packed = nn.utils.rnn.pack_padded_sequence(
            self.emb(x), lens, batch_first=True, enforce_sorted=False
        )
        h, _ = nn.utils.rnn.pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        return self.out(h)


m = Tagger(20, 4)
print(m)
seqs = [torch.randint(1, 20, (n,)) for n in (6, 4, 7, 5)]
tags = [s % 4 for s in seqs]
lens = torch.tensor([len(s) for s in seqs])
X = nn.utils.rnn.pad_sequence(seqs, batch_first=True)
Y = nn.utils.rnn.pad_sequence(tags, batch_first=True)
mask = X.ne(0)
opt = torch.optim.Adam(m.parameters(), lr=0.05)
for e in range(20):
    loss = -m.crf(m(X, lens), Y, mask, reduction="token_mean")
    m.zero_grad()
    loss.backward()
    opt.step()
    if e % 5 == 4:
        print(f"epoch {e} {loss.item():.4f}")
with torch.no_grad():
    print(m.crf.decode(m(X, lens), mask))
print([t.tolist() for t in tags])
for bad in (
    lambda: CRF(0),
    lambda: m.crf(m(X, lens), Y, mask, reduction="x"),
    lambda: m.crf(m(X, lens), Y, ~mask),
):
    try:
        bad()
    except ValueError as e:
        print("ValueError:", e)
