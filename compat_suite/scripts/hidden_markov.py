# compat: rtol=1e-4 atol=1e-6 seconds=10 (the order of sums in float32)
"""A hidden Markov model: forward algorithm, likelihood by gradients, Viterbi."""

import torch
import torch.nn as nn

torch.manual_seed(3)


class HMM(nn.Module):
    def __init__(self, N, M):
        super().__init__()
        self.N, self.M = N, M
        self.T = nn.Parameter(torch.randn(N, N))
        self.E = nn.Parameter(torch.randn(N, M))
        self.pi = nn.Parameter(torch.randn(N))

    def sample(self, T=10):
        s = torch.distributions.Categorical(logits=self.pi).sample().item()
        z, x = [], []
        for _ in range(T):
            z.append(s)
            x.append(torch.distributions.Categorical(logits=self.E[s]).sample().item())
            s = torch.distributions.Categorical(logits=self.T[:, s]).sample().item()
        return x, z

    def forward(self, x, lengths):
        log_T = torch.log_softmax(self.T, 0)
        log_E = torch.log_softmax(self.E, 1)
        log_pi = torch.log_softmax(self.pi, 0)
        B, T = x.shape
        log_alpha = torch.zeros(B, T, self.N)
        log_alpha[:, 0, :] = log_E[:, x[:, 0]].transpose(0, 1) + log_pi
        for t in range(1, T):
            trans = torch.logsumexp(
                log_T[None] + log_alpha[:, t - 1, None, :].clone(), dim=2
            )
            log_alpha[:, t, :] = log_E[:, x[:, t]].transpose(0, 1) + trans
        log_sums = log_alpha.logsumexp(dim=2)
        return torch.gather(log_sums, 1, lengths.view(-1, 1) - 1)

    @torch.no_grad()
    def viterbi(self, x, lengths):
        log_T, log_E, log_pi = (
            self.T.log_softmax(0),
            self.E.log_softmax(1),
            self.pi.log_softmax(0),
        )
        B, T = x.shape
        log_delta = torch.zeros(B, T, self.N)
        psi = torch.zeros(B, T, self.N, dtype=torch.long)
        log_delta[:, 0] = log_E[:, x[:, 0]].t() + log_pi
        for t in range(1, T):
            m, a = (log_T[None] + log_delta[:, t - 1, None, :]).max(2)
            log_delta[:, t] = log_E[:, x[:, t]].t() + m
            psi[:, t] = a
        log_max = log_delta.max(2)[0]
        best = torch.gather(log_max, 1, lengths.view(-1, 1) - 1)
        paths = []
        for i in range(B):
            path = [log_delta[i, lengths[i] - 1].argmax().item()]
            for t in range(lengths[i] - 1, 0, -1):
                path.insert(0, psi[i, t, path[0]].item())
            paths.append(path)
        return paths, best


hmm = HMM(3, 5)
x = torch.tensor([hmm.sample(8)[0] for _ in range(6)])
lengths = torch.tensor([8, 7, 8, 5, 3, 8])
print(x)
opt = torch.optim.Adam(hmm.parameters(), lr=0.05)
for i in range(15):
    loss = -hmm(x, lengths).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if i % 5 == 0:
        print(f"{i} {loss.item():.4f}")
paths, best = hmm.viterbi(x, lengths)
print(paths, best.squeeze())
