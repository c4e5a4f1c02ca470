"""Gradients after the results were read: what backward needs has been kept."""

from __future__ import annotations

import pickle

from tests.oracle import case, evaluate


@case.over(
    "F.rrelu(x, training=True)",
    "F.dropout(x, 0.4)",
    "F.alpha_dropout(x, 0.4)",
    "F.fractional_max_pool2d(x[None], 2, (2, 2), _random_samples=u.reshape(1, 1, 2))",
    "F.embedding_bag(i, x, j, mode='max')",
    "F.embedding_bag(i, x, j, mode='mean')",
    "F.embedding_bag(i, x, j, mode='sum', per_sample_weights=w)",
    "F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2)",
    "F.multi_margin_loss(x, i, weight=u4)",
    "F.cross_entropy(x, i, weight=u4)",
    "F.grid_sample(x[None, None], w.reshape(1, 1, 2, 2).tanh(), align_corners=False)",
    "x.index_put((i,), y, accumulate=True)",
    "x.scatter_reduce(0, k, y, 'prod')",
    "x.scatter_add(0, k, y)",
    "x.index_reduce(0, i, y, 'mean')",
    "x.masked_scatter(m, y)",
    "torch.where(m, x, y)",
)
def gradients_after_reading(torch, text):
    names = {
        "x": torch.randn(4, 4, requires_grad=True),
        "y": torch.randn(4, 4, requires_grad=True),
        "w": torch.rand(4, requires_grad=True),
        "u": torch.tensor([0.3, 0.7]),
        "u4": torch.tensor([1.0, 2.0, 3.0, 4.0]),
        "i": torch.tensor([0, 2, 1, 2]),
        "j": torch.tensor([0, 2]),
        "k": torch.tensor([[0, 1, 2, 3], [3, 1, 0, 0], [1, 1, 1, 1], [2, 0, 3, 1]]),
        "m": torch.tensor([True, False, True, True]),
        "F": torch.nn.functional,
        "torch": torch,
    }
    result = eval(text, names)
    yield result.detach(), result.tolist()
    result.square().sum().backward()
    yield [names[n].grad for n in "xyw"]


@case.lines("""
F.relu
F.gelu
F.cross_entropy
torch.cat
torch.clone
torch.sum
torch.linalg.inv
torch.special.i1
torch.func.grad
torch.nn.TransformerEncoderLayer(2, 1, 2).activation
""")
def functions_can_be_pickled(torch, line):
    found = evaluate(torch, line.replace("F.", "torch.nn.functional."))
    return pickle.loads(pickle.dumps(found)) is found
