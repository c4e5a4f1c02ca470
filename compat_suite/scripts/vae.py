# compat: rtol=1e-3 atol=1e-5 seconds=6 (many steps of float32 sums in another order)
"""A variational autoencoder: reparameterisation, BCE and KL, samples from the prior."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(3)


class VAE(nn.Module):
    def __init__(self, inputs=24, hidden=20, latent=3):
        super().__init__()
        self.fc1 = nn.Linear(inputs, hidden)
        self.fc21 = nn.Linear(hidden, latent)
        self.fc22 = nn.Linear(hidden, latent)
        self.fc3 = nn.Linear(latent, hidden)
        self.fc4 = nn.Linear(hidden, inputs)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 24))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 24), reduction="sum")
    # 0.5 * sum(1 + log(sigma^2) - mu^2 - sigma^2)
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


prototypes = (torch.rand(4, 4, 6) > 0.5).float()
which = torch.randint(0, 4, (128,))
flips = torch.bernoulli(torch.full((128, 4, 6), 0.05))
data = (prototypes[which] - flips).abs()

model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(1, 7):
    model.train()
    train_loss = 0
    for batch in data.split(32):
        optimizer.zero_grad()
        recon, mu, logvar = model(batch)
        loss = loss_function(recon, batch, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    print(f"====> Epoch: {epoch} Average loss: {train_loss / len(data):.4f}")

model.eval()
with torch.inference_mode():
    mu, logvar = model.encode(data.flatten(1))
    for k in range(4):
        print("prototype", k, mu[which == k].mean(dim=0), logvar[which == k].mean())
    sample = model.decode(torch.randn(8, 3))
    print("samples", (sample > 0.5).sum(dim=1).tolist(), f"{sample.mean():.4f}")
    # The evidence bound by importance sampling.
    x = data[:16].flatten(1)
    mu, logvar = model.encode(x)
    z = mu + torch.randn(10, 16, 3) * (0.5 * logvar).exp()
    log_q = (-0.5 * ((z - mu) ** 2 / logvar.exp() + logvar)).sum(-1)
    log_p = (-0.5 * z**2).sum(-1)
    p = model.decode(z).clamp(1e-6, 1 - 1e-6)
    log_x = (x * p.log() + (1 - x) * torch.log1p(-p)).sum(-1)
    bound = torch.logsumexp(log_x + log_p - log_q, dim=0) - torch.tensor(10.0).log()
    print("log likelihood", f"{bound.mean().item():.3f}")
