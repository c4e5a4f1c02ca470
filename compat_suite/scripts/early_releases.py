# compat: rtol=1e-4 atol=1e-6 seconds=6 (sums of float32 in another order)
# ruff: noqa: C408, UP008, UP010, UP031
"""A program as they were written before 1.5: Variable, tensor types, old overloads."""

from __future__ import print_function

import math
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Variable
from torch.optim import Optimizer

warnings.simplefilter("ignore")
torch.manual_seed(1)
use_cuda = torch.cuda.is_available()
FloatTensor = torch.cuda.FloatTensor if use_cuda else torch.FloatTensor


class RAdam(Optimizer):
    """Liu et al. 2019, in the form in which it was published."""

    def __init__(self, params, lr=1e-2, betas=(0.9, 0.999), eps=1e-8, weight_decay=0):
        defaults = dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
        super(RAdam, self).__init__(params, defaults)

    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad.data.float()
                p_data = p.data.float()
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p_data)
                    state["exp_avg_sq"] = torch.zeros_like(p_data)
                exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
                exp_avg_sq.mul_(beta2).addcmul_(1 - beta2, grad, grad)
                exp_avg.mul_(beta1).add_(1 - beta1, grad)
                state["step"] += 1
                power = beta2 ** state["step"]
                longest = 2 / (1 - beta2) - 1
                length = longest - 2 * state["step"] * power / (1 - power)
                size = group["lr"] / (1 - beta1 ** state["step"])
                if group["weight_decay"] != 0:
                    p_data.add_(-group["weight_decay"] * group["lr"], p_data)
                if length >= 5:
                    size *= math.sqrt((1 - power) * (length - 4) / (longest - 4))
                    p_data.addcdiv_(-size, exp_avg, exp_avg_sq.sqrt().add_(1e-8))
                else:
                    p_data.add_(-size, exp_avg)
                p.data.copy_(p_data)


class Net(nn.Module):
    def __init__(self, inputs, hidden, outputs):
        super(Net, self).__init__()
        self.encoder = nn.LSTM(inputs, hidden, 1)
        self.decoder = nn.Linear(hidden, outputs)
        self.hidden = hidden
        self.decoder.weight.data.uniform_(-0.1, 0.1)
        nn.init.constant(self.decoder.bias, 0)

    def forward(self, x, state):
        out, state = self.encoder(x, state)
        flat = out.view(out.size(0) * out.size(1), out.size(2))
        return self.decoder(F.tanh(flat)), state

    def init_hidden(self, size):
        weight = next(self.parameters()).data
        zeros = [weight.new(1, size, self.hidden).zero_() for _ in range(2)]
        return tuple(Variable(z) for z in zeros)


x = Variable(torch.randn(6, 4, 3).type(FloatTensor))
y = Variable((x.data.sum(2) > 0).type(torch.LongTensor).view(-1))
net = Net(3, 8, 2)
print(net)
optimizer = RAdam(net.parameters(), weight_decay=1e-4)
criterion = nn.CrossEntropyLoss(size_average=True)
for epoch in range(12):
    state = net.init_hidden(4)
    net.zero_grad()
    output, state = net(x, state)
    loss = criterion(output, y)
    loss.backward()
    torch.nn.utils.clip_grad_norm(net.parameters(), 0.5)
    optimizer.step()
    if epoch % 4 == 0:
        correct = output.data.max(1, keepdim=True)[1].eq(y.data.view(-1, 1)).cpu().sum()
        print("epoch %d loss %.5f correct %d" % (epoch, loss.item(), correct))
print(
    F.softmax(output)[:2].data, F.nll_loss(F.log_softmax(output), y, reduce=False)[:2]
)
volatile = Variable(x.data, volatile=True)
print(torch.add(volatile[0, 0], 2, torch.ones(3)).size(), volatile.requires_grad)
print(torch.addmm(2, torch.eye(2), 3, torch.ones(2, 2), torch.eye(2)))
