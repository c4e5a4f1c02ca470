# compat: rtol=1e-3 atol=1e-4 seconds=23 (convolutions, sums in another order)
"""A small U-Net on discs: transposed convolutions, skips, Dice loss, IoU."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(14)


class DoubleConv(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(out_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.InstanceNorm2d(out_channels, affine=True),
            nn.LeakyReLU(0.1, inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class UNet(nn.Module):
    def __init__(self, bilinear):
        super().__init__()
        self.inc = DoubleConv(1, 4)
        self.down = nn.Sequential(nn.MaxPool2d(2), DoubleConv(4, 8))
        if bilinear:
            self.up = nn.Sequential(
                nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
                nn.Conv2d(8, 4, 1),
            )
        else:
            self.up = nn.ConvTranspose2d(8, 4, kernel_size=2, stride=2)
        self.conv = DoubleConv(8, 4)
        self.outc = nn.Conv2d(4, 1, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.up(self.down(x1))
        diff_y = x1.size()[2] - x2.size()[2]
        diff_x = x1.size()[3] - x2.size()[3]
        x2 = F.pad(
            x2, [diff_x // 2, diff_x - diff_x // 2, diff_y // 2, diff_y - diff_y // 2]
        )
        return self.outc(self.conv(torch.cat([x1, x2], dim=1)))


def discs(n, size=9):
    ys, xs = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    centre = torch.randint(2, size - 2, (n, 2, 1, 1))
    radius = torch.randint(1, 4, (n, 1, 1))
    inside = (ys - centre[:, 0]) ** 2 + (xs - centre[:, 1]) ** 2 <= radius**2
    masks = inside.unsqueeze(1).float()
    return masks + 0.4 * torch.randn(n, 1, size, size), masks


def dice_loss(logits, target, smooth=1.0):
    probability = logits.sigmoid()
    intersection = (probability * target).sum(dim=(1, 2, 3))
    union = probability.sum(dim=(1, 2, 3)) + target.sum(dim=(1, 2, 3))
    return 1 - ((2.0 * intersection + smooth) / (union + smooth)).mean()


for bilinear in (False, True):
    torch.manual_seed(2)
    net = UNet(bilinear)
    optimizer = torch.optim.RMSprop(net.parameters(), lr=5e-3, momentum=0.5)
    criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0))
    net.train()
    for step in range(8):
        images, masks = discs(8)
        logits = net(images)
        loss = criterion(logits, masks) + dice_loss(logits, masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 2:
            print(f"bilinear {bilinear} step {step}: {loss.item():.5f}")
    net.eval()
    with torch.no_grad():
        images, masks = discs(8)
        score = torch.sigmoid(net(images))
        best = max(
            (((score > c) & (masks > 0)).sum() / ((score > c) | (masks > 0)).sum(), c)
            for c in (0.3, 0.5)
        )
    print("IoU > 0:", best[0].item() > 0, f"mean score {score.mean():.4f}")
