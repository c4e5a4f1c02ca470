# compat: rtol=1e-3 atol=1e-5 seconds=3 (three steps of training)
"""A spiking network trained with a surrogate gradient."""

import math

import torch
import torch.nn as nn

torch.manual_seed(0)


class SurrGradSpike(torch.autograd.Function):
    scale = 100.0

    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        out = torch.zeros_like(input)
        out[input > 0] = 1.0
        return out

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        grad_input = grad_output.clone()
        return grad_input / (SurrGradSpike.scale * torch.abs(input) + 1.0) ** 2


spike_fn = SurrGradSpike.apply
w1 = torch.empty((10, 6), requires_grad=True)
torch.nn.init.normal_(w1, mean=0.0, std=1.5 / math.sqrt(10))
w2 = torch.empty((6, 2), requires_grad=True)
torch.nn.init.normal_(w2, mean=0.0, std=1.5 / math.sqrt(6))
inp = (torch.rand(4, 12, 10) < 0.3).float()
tgt = torch.tensor([0, 1, 1, 0])
opt = torch.optim.Adamax([w1, w2], lr=2e-3, betas=(0.9, 0.999))


def run_snn(inputs):
    h1 = torch.einsum("abc,cd->abd", (inputs, w1))
    syn = torch.zeros((4, 6))
    mem = torch.zeros((4, 6))
    spk = []
    for t in range(12):
        mthr = mem - 1.0
        out = spike_fn(mthr)
        rst = out.detach()
        syn = 0.8 * syn + h1[:, t]
        mem = (0.9 * mem + syn) * (1.0 - rst)
        spk.append(out)
    h2 = torch.einsum("abc,cd->abd", (torch.stack(spk, dim=1), w2))
    flt = torch.zeros((4, 2))
    o = torch.zeros((4, 2))
    rec = [o]
    for t in range(12):
        flt, o = 0.8 * flt + h2[:, t], 0.9 * o + flt
        rec.append(o)
    return torch.stack(rec, dim=1), torch.stack(spk, dim=1)


for e in range(3):
    output, spks = run_snn(inp)
    m, _ = torch.max(output, 1)
    loss = nn.NLLLoss()(nn.LogSoftmax(dim=1)(m), tgt) + 1e-5 * torch.sum(spks)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"Epoch {e + 1}: loss={loss.item():.5f}", spks.sum())
