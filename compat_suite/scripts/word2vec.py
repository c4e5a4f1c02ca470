# compat: rtol=1e-3 atol=1e-5 seconds=5 (many steps of float32 sums in another order)
"""Skip-gram with negative sampling, n-gram language model and nearest neighbours."""

from collections import Counter

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

torch.manual_seed(1)
corpus = (
    "the king rules the land and the queen rules the land while the man works the "
    "field and the woman works the field so the king and the queen thank the man "
    "and the woman for the bread of the land and the field"
).split()
counts = Counter(corpus)
vocab = sorted(counts, key=lambda w: (-counts[w], w))
word_to_ix = {word: i for i, word in enumerate(vocab)}
ids = [word_to_ix[w] for w in corpus]
frequency = torch.tensor([counts[w] for w in vocab], dtype=torch.float)
noise = frequency**0.75
noise /= noise.sum()


class SkipGram(nn.Module):
    def __init__(self, vocab_size, dim):
        super().__init__()
        self.centre = nn.Embedding(vocab_size, dim)
        self.context = nn.Embedding(vocab_size, dim)
        self.centre.weight.data.uniform_(-0.5 / dim, 0.5 / dim)
        self.context.weight.data.zero_()

    def forward(self, centre, positive, negative):
        v = self.centre(centre)
        score = torch.sum(v * self.context(positive), dim=1)
        neg = torch.bmm(self.context(negative), v.unsqueeze(2)).squeeze(2)
        return -(F.logsigmoid(score) + F.logsigmoid(-neg).sum(1)).mean()


pairs = torch.tensor(
    [
        (ids[i], ids[j])
        for i in range(len(ids))
        for j in range(max(0, i - 2), min(len(ids), i + 3))
        if i != j
    ]
)
print(len(vocab), pairs.shape)
model = SkipGram(len(vocab), 8)
optimizer = optim.Adagrad(model.parameters(), lr=0.2)
for epoch in range(8):
    total = 0.0
    order = pairs[torch.randperm(len(pairs))]
    for batch in order.split(32)[:5]:
        negative = torch.multinomial(noise, len(batch) * 4, replacement=True)
        loss = model(batch[:, 0], batch[:, 1], negative.view(len(batch), 4))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 2:
        print(f"epoch {epoch} loss {total / 5:.5f}")

vectors = F.normalize(model.centre.weight.detach(), dim=1)
similarity = vectors @ vectors.T
similarity[range(len(vocab)), range(len(vocab))] = -1
for word in ("king", "field"):
    value, index = similarity[word_to_ix[word]].topk(2)
    print(word, [vocab[i] for i in index], value)
print(F.cosine_similarity(vectors[0], vectors[1], dim=0).item() <= 1)


class NGramLanguageModeler(nn.Module):
    def __init__(self, vocab_size, embedding_dim, context_size):
        super().__init__()
        self.embeddings = nn.Embedding(vocab_size, embedding_dim)
        self.linear1 = nn.Linear(context_size * embedding_dim, 24)
        self.linear2 = nn.Linear(24, vocab_size)

    def forward(self, inputs):
        embeds = self.embeddings(inputs).view((1, -1))
        out = F.relu(self.linear1(embeds))
        return F.log_softmax(self.linear2(out), dim=1)


ngrams = [([corpus[i - 2], corpus[i - 1]], corpus[i]) for i in range(2, 22)]
loss_function = nn.NLLLoss()
model = NGramLanguageModeler(len(vocab), 6, 2)
optimizer = optim.SGD(model.parameters(), lr=0.1)
losses = []
for _epoch in range(5):
    total_loss = 0
    for context, target in ngrams:
        context_idxs = torch.tensor([word_to_ix[w] for w in context])
        model.zero_grad()
        log_probs = model(context_idxs)
        loss = loss_function(log_probs, torch.tensor([word_to_ix[target]]))
        loss.backward()
        optimizer.step()
        total_loss += loss.item()
    losses.append(round(total_loss, 3))
print(losses)
print(model.embeddings.weight[word_to_ix["the"]])
