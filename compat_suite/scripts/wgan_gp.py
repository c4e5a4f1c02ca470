# compat: rtol=1e-3 atol=1e-4 seconds=6 (adversarial steps amplify float32 rounding)
"""A Wasserstein GAN with gradient penalty: the gradient of a gradient's norm."""

import math

import torch
import torch.autograd as autograd
from torch import nn

torch.manual_seed(5)
latent_dim, n_critic, lambda_gp, batch = 4, 3, 10, 32


def weights_init(m):
    if m.__class__.__name__.find("Linear") != -1:
        nn.init.normal_(m.weight, 0.0, 0.2)
        nn.init.zeros_(m.bias)


generator = nn.Sequential(
    nn.Linear(latent_dim, 24), nn.LeakyReLU(0.2, inplace=True), nn.Linear(24, 2)
)
discriminator = nn.Sequential(
    nn.Linear(2, 24), nn.LeakyReLU(0.2), nn.Linear(24, 24), nn.ELU(), nn.Linear(24, 1)
)
generator.apply(weights_init)
discriminator.apply(weights_init)


def real_batch():
    centre = torch.randint(0, 6, (batch,)) * (2 * math.pi / 6)
    ring = torch.stack([centre.cos(), centre.sin()], dim=1)
    return ring + 0.05 * torch.randn(batch, 2)


def compute_gradient_penalty(D, real_samples, fake_samples):
    alpha = torch.rand(real_samples.size(0), 1)
    interpolates = alpha * real_samples + (1 - alpha) * fake_samples
    interpolates.requires_grad_(True)
    d_interpolates = D(interpolates)
    fake = torch.ones(real_samples.shape[0], 1, requires_grad=False)
    gradients = autograd.grad(
        outputs=d_interpolates,
        inputs=interpolates,
        grad_outputs=fake,
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    gradients = gradients.view(gradients.size(0), -1)
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


optimizer_G = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.9))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.9))

for i in range(1, 31):
    real = real_batch()
    optimizer_D.zero_grad()
    z = torch.randn(batch, latent_dim)
    fake = generator(z).detach()
    penalty = compute_gradient_penalty(discriminator, real, fake)
    d_loss = -discriminator(real).mean() + discriminator(fake).mean()
    d_loss = d_loss + lambda_gp * penalty
    d_loss.backward()
    optimizer_D.step()

    if i % n_critic == 0:
        optimizer_G.zero_grad()
        for p in discriminator.parameters():
            p.requires_grad_(False)
        fake = generator(torch.randn(batch, latent_dim))
        g_loss = -torch.mean(discriminator(fake))
        g_loss.backward()
        optimizer_G.step()
        for p in discriminator.parameters():
            p.requires_grad_(True)
    if i % 6 == 0:
        print(
            f"[{i}] [D loss: {d_loss.item():.5f}] [G loss: {g_loss.item():.5f}] "
            f"[gp: {penalty.item():.5f}]"
        )

with torch.no_grad():
    points = generator(torch.randn(64, latent_dim))
print("mean", points.mean(0), "std", points.std(0, unbiased=False))
