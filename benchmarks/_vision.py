"""Training steps of models of images, as scripts write them."""

from __future__ import annotations

from typing import Any

from ._case import Step


def residual_network(torch: Any) -> Step:
    """Six residual blocks on images of 32 x 32, SGD with momentum."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, given, made, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(given, made, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(made)
            self.conv2 = nn.Conv2d(made, made, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(made)
            self.shortcut = nn.Sequential()
            if stride != 1:
                self.shortcut = nn.Sequential(
                    nn.Conv2d(given, made, 1, stride, bias=False), nn.BatchNorm2d(made)
                )

        def forward(self, x):
            out = F.relu(self.bn1(self.conv1(x)))
            return F.relu(self.bn2(self.conv2(out)) + self.shortcut(x))

    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        *(Block(16, 16, 1) for _ in range(2)),
        Block(16, 32, 2),
        Block(32, 32, 1),
        Block(32, 64, 2),
        Block(64, 64, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )
    optimizer = torch.optim.SGD(
        model.parameters(), lr=1e-3, momentum=0.9, weight_decay=5e-4
    )
    images, labels = torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,))

    def step() -> float:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def u_net(torch: Any) -> Step:
    """Two levels on images of 64 x 64, RMSprop, a Dice loss."""
    nn, F = torch.nn, torch.nn.functional

    def twice(given, made):
        layers = []
        for inputs in (given, made):
            layers += [nn.Conv2d(inputs, made, 3, padding=1), nn.BatchNorm2d(made)]
            layers.append(nn.ReLU(inplace=True))
        return nn.Sequential(*layers)

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down1, self.down2 = twice(3, 16), twice(16, 32)
            self.bottom, self.pool = twice(32, 64), nn.MaxPool2d(2)
            self.up2 = nn.ConvTranspose2d(64, 32, 2, 2)
            self.up1 = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.back2, self.back1 = twice(64, 32), twice(48, 16)
            self.head = nn.Conv2d(16, 1, 1)

        def forward(self, x):
            first = self.down1(x)
            second = self.down2(self.pool(first))
            x = self.up2(self.bottom(self.pool(second)))
            x = self.back2(torch.cat([x, second], 1))
            x = self.back1(torch.cat([self.up1(x), first], 1))
            return self.head(x)

    model = UNet()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-5, momentum=0.9)
    images = torch.randn(4, 3, 64, 64)
    masks = (torch.rand(4, 1, 64, 64) > 0.5).float()

    def step() -> float:
        scores = model(images)
        loss = F.binary_cross_entropy_with_logits(scores, masks)
        shares = torch.sigmoid(scores)
        both = (shares * masks).sum()
        loss = loss + 1 - (2 * both + 1) / (shares.sum() + masks.sum() + 1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def dcgan(torch: Any) -> Step:
    """Two networks and two optimizers; three losses are read."""
    nn = torch.nn

    def up(given, made, stride=2, padding=1):
        conv = nn.ConvTranspose2d(given, made, 4, stride, padding, bias=False)
        return [conv, nn.BatchNorm2d(made), nn.ReLU(True)]

    def down(given, made):
        conv = nn.Conv2d(given, made, 4, 2, 1, bias=False)
        return [conv, nn.BatchNorm2d(made), nn.LeakyReLU(0.2, inplace=True)]

    generator = nn.Sequential(
        *up(32, 64, 1, 0),
        *up(64, 32),
        *up(32, 16),
        nn.ConvTranspose2d(16, 3, 4, 2, 1, bias=False),
        nn.Tanh(),
    )
    critic = nn.Sequential(
        nn.Conv2d(3, 16, 4, 2, 1, bias=False),
        nn.LeakyReLU(0.2, inplace=True),
        *down(16, 32),
        *down(32, 64),
        nn.Conv2d(64, 1, 4, 1, 0, bias=False),
        nn.Sigmoid(),
    )
    optimizers = [
        torch.optim.Adam(net.parameters(), lr=1e-5, betas=(0.5, 0.999))
        for net in (critic, generator)
    ]
    criterion, images = nn.BCELoss(), torch.randn(32, 3, 32, 32)

    def step() -> float:
        critic.zero_grad()
        label = torch.full((32,), 1.0)
        real = criterion(critic(images).view(-1), label)
        real.backward()
        found = real.item()
        fake = generator(torch.randn(32, 32, 1, 1))
        label.fill_(0.0)
        other = criterion(critic(fake.detach()).view(-1), label)
        other.backward()
        optimizers[0].step()
        generator.zero_grad()
        label.fill_(1.0)
        fooled = criterion(critic(fake).view(-1), label)
        fooled.backward()
        optimizers[1].step()
        return found + other.item() + fooled.item()

    return step


def vision_transformer(torch: Any) -> Step:
    """Four layers on 65 tokens, AdamW with a schedule, accuracy and loss read."""
    nn, F = torch.nn, torch.nn.functional
    width = 64

    class ViT(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches = nn.Conv2d(3, width, 4, 4)
            self.token = nn.Parameter(torch.zeros(1, 1, width))
            self.places = nn.Parameter(torch.randn(1, 65, width) * 0.02)
            layer = nn.TransformerEncoderLayer(
                width, 4, 4 * width, 0.1, "gelu", batch_first=True, norm_first=True
            )
            self.layers = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
            self.head = nn.Linear(width, 10)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.places
            return self.head(self.layers(x)[:, 0])

    model = ViT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10_000)
    images, labels = torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,))

    def step() -> float:
        optimizer.zero_grad()
        scores = model(images)
        loss = F.cross_entropy(scores, labels, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        schedule.step()
        right = (scores.argmax(1) == labels).sum().item()
        return loss.item() + right

    return step


def variational_autoencoder(torch: Any) -> Step:
    """Two perceptrons, random numbers in each step."""
    nn, F = torch.nn, torch.nn.functional
    encoder = nn.Sequential(nn.Linear(784, 400), nn.ReLU())
    mean, spread = nn.Linear(400, 20), nn.Linear(400, 20)
    decoder = nn.Sequential(
        nn.Linear(20, 400), nn.ReLU(), nn.Linear(400, 784), nn.Sigmoid()
    )
    model = nn.ModuleList([encoder, mean, spread, decoder])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
    images = torch.rand(128, 1, 28, 28)

    def step() -> float:
        optimizer.zero_grad()
        flat = images.view(-1, 784)
        hidden = encoder(flat)
        mu, logvar = mean(hidden), spread(hidden)
        std = torch.exp(0.5 * logvar)
        made = decoder(mu + torch.randn_like(std) * std)
        loss = F.binary_cross_entropy(made, flat, reduction="sum")
        loss = loss - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def radiance_field(torch: Any) -> Step:
    """256 rays of 32 samples, encoded places, products along rays."""
    nn, F = torch.nn, torch.nn.functional
    layers = nn.ModuleList([nn.Linear(39, 128), *(nn.Linear(128, 128) for _ in "123")])
    density, colour = nn.Linear(128, 1), nn.Linear(128, 3)
    model = nn.ModuleList([layers, density, colour])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
    origins = torch.randn(256, 3)
    directions = F.normalize(torch.randn(256, 3), dim=-1)
    wanted = torch.rand(256, 3)

    def encoded(x):
        waves = [f(2.0**i * x) for i in range(6) for f in (torch.sin, torch.cos)]
        return torch.cat([x, *waves], -1)

    def step() -> float:
        depths = torch.linspace(2.0, 6.0, 32).expand(256, 32)
        depths = depths + torch.rand(256, 32) * 4 / 32
        places = origins[:, None] + directions[:, None] * depths[..., None]
        x = encoded(places.reshape(-1, 3))
        for layer in layers:
            x = F.relu(layer(x))
        sigma = F.relu(density(x)).view(256, 32)
        rgb = torch.sigmoid(colour(x)).view(256, 32, 3)
        gaps = torch.cat(
            [depths[:, 1:] - depths[:, :-1], torch.full((256, 1), 1e10)], -1
        )
        alpha = 1 - torch.exp(-sigma * gaps)
        left = torch.cumprod(
            torch.cat([torch.ones(256, 1), 1 - alpha + 1e-10], -1), -1
        )[:, :-1]
        made = ((alpha * left)[..., None] * rgb).sum(1)
        loss = ((made - wanted) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step
