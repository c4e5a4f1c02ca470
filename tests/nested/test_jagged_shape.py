"""Views, pieces, joins and padding of jagged nested tensors."""

from __future__ import annotations

from tests.nested import shown
from tests.nested.test_jagged import holes, jagged
from tests.oracle import case


@case.lines(r"""
x.unbind(), torch.unbind(x), list(x)
x.unbind(1)
h.unbind(), t.unbind()
x[0], x[-1], x[1, 2], x[0, 1, 2]
x[5]
x[..., 0], x[..., :2], x[..., 1:], x[..., None]
x[..., -1:]
x[:]
x[0:1]
x[:, 0]
x[None]
x[torch.tensor([0, 1])]
x[0, 0, 0, 0]
for part in x: print(part)
x[0] = 1.; x
x[1] = torch.zeros(3, 3); x
x[1, 0] = torch.ones(3) * 5; x
x[0, 1, 2] = 7; x
x[0] = torch.ones(2, 2)
x[..., 0] = x[..., 1] * 2; x
x[..., 0] += 1; x
x[5] = 1.
x.select(0, 1), x.select(2, 1), x.select(-1, 0), x.transpose(1, 2).select(1, 0)
x.select(1, 0)
h.select(0, 1)
x.transpose(1, 2), x.transpose(-1, 1), x.transpose(1, 2).transpose(1, 2), x.mT
x.transpose(0, 1)
x.transpose(2, 2)
q.transpose(1, 2), q.transpose(2, 3), q.transpose(1, 3), q.swapaxes(2, 3)
x.T
x.permute(0, 2, 1), q.permute(0, 2, 1, 3), q.permute(0, 3, 2, 1)
torch.permute(q, (0, 1, 3, 2))
x.permute(1, 0, 2)
x.permute(0, 1)
x.permute(0, 1, 1)
x.unsqueeze(1), x.unsqueeze(2), x.unsqueeze(3), x.unsqueeze(-1)
x.transpose(1, 2).unsqueeze(1)
x.unsqueeze(0)
x.unsqueeze(-1).squeeze(-1), x.unsqueeze(2).squeeze(2), x.squeeze(2)
x.squeeze()
x.squeeze(0)
x.squeeze(1)
x.view(2, -1, 3, 1), x.view(2, j, 1, 3), x.view(2, j, 3), x.view((2, j, 3))
x.view(2, 5, 3)
x.view(-1)
x.view(2, j, 2)
x.view(3, j, 3)
x.transpose(1, 2).view(2, 3, j)
x.transpose(1, 2).view(2, 1, 3, j)
x.reshape(2, -1, 1, 3), x.reshape(2, j, 3, 1)
x.transpose(1, 2).transpose(1, 2).reshape(2, j, 3)
x.reshape(2, j * 3)
x.view_as(x), x.reshape_as(x), x.expand_as(x)
q.flatten(2), q.flatten(-2), q.flatten(2, 3), torch.flatten(q, 2), x.flatten(2)
q.flatten(1)
q.flatten()
q.flatten(-3, -2)
x.unflatten(-1, [3, 1]), x.unflatten(2, (1, -1)), q.unflatten(2, [2, 1])
x.unflatten(-1, [2, 2])
x.unflatten(1, [2, 2])
x.unsqueeze(-1).expand(2, j, 3, 4), x.unsqueeze(-1).expand(-1, -1, -1, 2)
x.expand(2, j, 4)
x.expand(3, j, 3)
x.narrow(2, 1, 2), torch.narrow(x, -1, 0, 1)
x.narrow(1, 0, 1)
x.narrow(0, 0, 1)
x.chunk(3, -1), x.chunk(2, dim=2), torch.chunk(x, 2, dim=-1)
x.chunk(2, 0), x.chunk(3)
x.chunk(2, 1)
x.split(2, -1), x.split([1, 2], dim=-1), torch.split(x, 1, dim=2)
x.split(1, 0)
x.split(1, 1)
x.split([1, 1], 0)
torch.cat([x, x], -1), torch.cat((x, x * 2), dim=2), torch.cat([x, torch.ones(5, 3)], 2)
torch.cat([x, x], 0)
torch.cat([x, x], 1)
torch.stack([x, x], -1), torch.stack([x, x + 1], 2)
torch.stack([x, x])
torch.stack([x, torch.ones(5, 3)], -1)
torch.stack([x, x.unsqueeze(-1)], -1)
torch.stack([x, y], -1)
x.diff(), x.diff(dim=2)
x.to_padded_tensor(0.), x.to_padded_tensor(-1.), torch.nested.to_padded_tensor(x, 7)
x.to_padded_tensor(padding=2)
x.to_padded_tensor(0., output_size=(2, 4, 3)), x.to_padded_tensor(0., (2, 2, 3))
x.transpose(1, 2).to_padded_tensor(0.), q.to_padded_tensor(0.)
x.sum(-1).to_padded_tensor(0.)
x.long().to_padded_tensor(-5), (x > 0).to_padded_tensor(True)
x.double().to_padded_tensor(float('inf'))
f(torch.arange(4.), torch.tensor([0, 1, 4])).to_padded_tensor(0.)
h.to_padded_tensor(0.)
x.transpose(1, 2).split([1, 2], 1)
x.transpose(1, 2).chunk(3, 1)
x.transpose(1, 2).narrow(1, 0, 1)
x.transpose(1, 2)[:, :, :1]
h.chunk(2, 0)
h.squeeze(1)
x[..., :2].reshape(2, -1, 1, 2), x[..., :2].flatten(2), x[..., :2].unflatten(-1, [2, 1])
h.unsqueeze(-1).reshape(3, -1, 1), h.unsqueeze(-1).flatten(2)
y = x.chunk(2, 0)[1].softmax(1).to_padded_tensor(0.); y
torch.nested.to_padded_tensor(torch.ones(2), 0.)
x.sum(-1).masked_select(x.sum(-1) > 0)
x.masked_select(x > 0)
F.one_hot(x.abs().long(), 5)
torch.broadcast_to(x, (2, j, 3))
x.gather(1, torch.tensor([0]))
x.index_select(0, torch.tensor([0]))
F.pad(x, (1, 1))
torch.zeros(x.shape) if False else 1
x.roll(1)
""")
def lines(torch, line):
    x = jagged(torch)
    q = torch.nested.nested_tensor(
        [torch.arange(8.0).view(2, 2, 2), torch.arange(4.0).view(1, 2, 2)],
        layout=torch.jagged,
    )
    h = holes(torch)
    t = torch.nested.nested_tensor(
        [torch.ones(2, 3), torch.ones(2, 1)], layout=torch.jagged
    )
    names = {"x": x, "y": jagged(torch), "q": q, "h": h, "t": t, "j": x.size(1)}
    return shown(torch, line, f=torch.nested.nested_tensor_from_jagged, **names)
