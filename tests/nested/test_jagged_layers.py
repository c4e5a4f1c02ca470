"""Products, layers and attention of jagged nested tensors."""

from __future__ import annotations

from tests.nested import seen, shown
from tests.nested.test_jagged import jagged
from tests.oracle import case


@case.lines(r"""
x @ torch.arange(6.).view(3, 2), torch.matmul(x, torch.ones(3, 1))
x.matmul(torch.eye(3))
x @ torch.arange(12.).view(2, 3, 2), torch.bmm(x, torch.arange(12.).view(2, 3, 2))
x.transpose(1, 2) @ x, torch.bmm(x.transpose(1, 2), x)
torch.arange(6.).view(2, 3) @ x.transpose(1, 2)
torch.arange(12.).view(2, 2, 3) @ x.transpose(1, 2)
q @ q.transpose(-1, -2), q.matmul(torch.ones(2, 3))
x @ x.transpose(1, 2)
x @ torch.ones(3)
x @ x
torch.bmm(q, q)
torch.bmm(x, torch.ones(3, 2))
torch.mm(x, torch.ones(3, 2))
F.linear(x, torch.arange(12.).view(4, 3))
F.linear(x, torch.ones(2, 3), torch.tensor([1., 2.]))
F.linear(x.transpose(1, 2), torch.ones(4, 3))
F.layer_norm(x, (3,)), F.layer_norm(x, (3,), torch.tensor([1., 2., 3.]), torch.ones(3))
F.layer_norm(x, (j, 3))
F.layer_norm(x, (2, j, 3))
F.layer_norm(x.sum(-1), (j,))
F.rms_norm(x, (3,)), F.rms_norm(x, (3,), torch.tensor([1., 2., 3.]))
F.rms_norm(x, (j, 3))
F.embedding(i, torch.arange(20.).view(10, 2)), nn.Embedding(10, 3)(i)
F.embedding(i.unsqueeze(-1).transpose(1, 2), torch.ones(10, 2))
nn.ReLU()(x), nn.Softmax(-1)(x), nn.Dropout(0.0)(x), nn.Identity()(x), nn.GELU()(x)
nn.Tanh()(x)
nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.LayerNorm(4), nn.Linear(4, 2))(x)
nn.RMSNorm(3)(x)
F.cross_entropy(x, x)
F.batch_norm(x.sum(-1), None, None, training=True)
""")
def lines(torch, line):
    x = jagged(torch)
    q = torch.nested.nested_tensor(
        [torch.arange(8.0).view(2, 2, 2), torch.arange(4.0).view(1, 2, 2)],
        layout=torch.jagged,
    )
    i = torch.nested.nested_tensor([[1, 2], [3, 4, 5]], layout=torch.jagged)
    return shown(torch, line, x=x, q=q, i=i, j=x.size(1))


# PyTorch turns the operands of attention into the other kind of nested tensors on the
# CPU, of which it warns.
quiet = case(warnings=False)


def heads(torch, lengths, width=8):
    """A batch of sequences with two heads, as attention takes it."""
    made = [torch.randn(length, 2, width) for length in lengths]
    return torch.nested.nested_tensor(made, layout=torch.jagged).transpose(1, 2)


@quiet.over(scale=[None, 0.3])
def attention(torch, scale):
    q, k, v = (heads(torch, (3, 1, 4)) for _ in range(3))
    attend = torch.nn.functional.scaled_dot_product_attention
    made = attend(q, k, v, scale=scale)
    yield seen(made)
    yield seen(made.transpose(1, 2).flatten(-2))


@quiet
def attention_to_other_lengths(torch):
    q, k, v = heads(torch, (3, 1)), heads(torch, (2, 4)), heads(torch, (2, 4))
    return seen(torch.nn.functional.scaled_dot_product_attention(q, k, v))


@case
def attention_without_ragged_steps(torch):
    made = [torch.randn(length, 3, 4) for length in (2, 1)]
    q = torch.nested.nested_tensor(made, layout=torch.jagged).unsqueeze(2)
    attend = torch.nn.functional.scaled_dot_product_attention
    return seen(attend(q, q, q)), seen(attend(q, q, q, is_causal=True))


@case.lines(r"""
attend(q, q, torch.ones(2, 2, 3, 8))
attend(q, q, q.double())
attend(q, q, q.transpose(1, 2))
attend(q, q, q, torch.ones(3, 3))
attend(q.sum(-1).sum(1), q.sum(-1).sum(1), q.sum(-1).sum(1))
""")
def attention_refused(torch, line):
    attend = torch.nn.functional.scaled_dot_product_attention
    return shown(torch, line, attend=attend, q=heads(torch, (3, 1)))


class Block:
    """A transformer's layer as PyTorch's tutorial of building blocks writes it."""

    def __init__(self, torch):
        nn = torch.nn
        self.torch = torch
        self.projections = [nn.Linear(8, 8) for _ in range(3)]
        self.out = nn.Linear(8, 8)
        self.norm, self.up, self.down = (
            nn.LayerNorm(8),
            nn.Linear(8, 16),
            nn.Linear(16, 8),
        )

    def __call__(self, x):
        attend = self.torch.nn.functional.scaled_dot_product_attention
        q, k, v = (
            layer(x).unflatten(-1, [2, 4]).transpose(1, 2) for layer in self.projections
        )
        made = attend(q, k, v, dropout_p=0.0).transpose(1, 2).flatten(-2)
        x = x + self.out(made)
        return self.norm(x + self.down(self.up(x).relu()))


@quiet
def block_trains(torch):
    block = Block(torch)
    layers = (*block.projections, block.out, block.norm, block.up, block.down)
    parameters = [p for layer in layers for p in layer.parameters()]
    opt = torch.optim.SGD(parameters, lr=0.1)
    sequences = [torch.randn(length, 8) for length in (2, 5, 3)]
    x = torch.nested.nested_tensor(sequences, layout=torch.jagged)
    for _ in range(3):
        opt.zero_grad()
        loss = block(x).values().square().mul(torch.arange(8.0)).mean()
        loss.backward()
        opt.step()
        yield loss
    yield block.projections[1].weight.grad, block.norm.bias
