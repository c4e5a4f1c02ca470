"""A traced module is trained, copied, saved and loaded."""

import copy
import io
import pickle

import torch
import torch.nn.functional as F
from torch import fx, nn

torch.manual_seed(0)


@fx.wrap
def scaled(x, by):
    return x * by if x.dim() else x


fx.wrap("len")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8))
        self.register_buffer("steps", torch.zeros(()))
        self.head = nn.Linear(8, 3)

    def forward(self, x, mask=None):
        x = F.dropout(self.body(x), p=0.0, training=self.training)
        return self.head(scaled(x, by=2)) / len(x) + self.steps


net = Net()
traced = fx.symbolic_trace(net)
print(traced.code)
x, y = torch.randn(16, 4), torch.randint(3, (16,))
optimizer = torch.optim.AdamW(traced.parameters(), lr=0.05)
losses = []
for _ in range(5):
    optimizer.zero_grad()
    loss = F.cross_entropy(traced(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[-1] < losses[0])
torch.testing.assert_close(traced(x), net(x))
file = io.BytesIO()
torch.save(traced.state_dict(), file)
file.seek(0)
fresh = fx.symbolic_trace(Net())
print(fresh.load_state_dict(torch.load(file)))
torch.testing.assert_close(fresh(x), net(x))
twin = copy.deepcopy(traced)
with torch.no_grad():
    twin.head.bias.add_(1)
print(torch.allclose(twin(x), net(x)), twin.code == traced.code)
plain = fx.symbolic_trace(net.body)
for load in (lambda m: pickle.loads(pickle.dumps(m)), copy.copy):
    made = load(plain)
    torch.testing.assert_close(made(x), net.body(x))
    print(type(made).__name__, list(made.state_dict()))
file = io.BytesIO()
torch.save(plain, file)
file.seek(0)
loaded = torch.load(file, weights_only=False)
print(loaded.graph)
torch.testing.assert_close(loaded(x), net.body(x))
ema = torch.optim.swa_utils.AveragedModel(traced)
ema.update_parameters(traced)
print(len(list(ema.module.parameters())))
