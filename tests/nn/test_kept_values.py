"""Gradients after the results were read: what backward needs has been kept."""

from __future__ import annotations

import pickle

from tests.oracle import attempt, case, evaluate


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


@case.over(
    "F.pad(x, (1, 1), 'reflect')",
    "F.pad(x, (1, 0, 2, 1), 'replicate')",
    "F.pad(x, (1, 1), 'circular')",
    "F.pad(x, (1, 1))",
    "F.fractional_max_pool2d(x, 2, (2, 2), _random_samples=u)",
    "F.max_pool2d(x, 2)",
    "F.avg_pool2d(x, 2)",
    "F.interpolate(x[None], scale_factor=2)",
)
def linear_functions_that_keep_their_input(torch, text):
    """What PyTorch keeps, though its value is of no account, is not to be written to;
    gradients have its history."""
    leaf = torch.arange(16.0).reshape(1, 4, 4).requires_grad_()
    names = {"F": torch.nn.functional, "u": torch.tensor([[[0.3, 0.7]]])}
    names["x"] = leaf * 1
    grad = torch.autograd.grad
    out = eval(text, names)
    (found,) = grad(out.square().sum() + out.sum(), names["x"], create_graph=True)
    (plain,) = grad(out.sum(), names["x"], create_graph=True)
    yield found.detach(), found.requires_grad, plain.detach(), plain.requires_grad
    yield grad(found.square().sum(), leaf)
    names["x"] = leaf * 1
    out = eval(text, names)
    names["x"].mul_(2)
    yield attempt(out.sum().backward), leaf.grad


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
