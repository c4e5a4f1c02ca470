"""Arguments of wrong kinds: functions name the one that they hand them on to."""

from __future__ import annotations

from tests.oracle import case, evaluate


@case.lines("""
F.layer_norm(x, (3,), eps="a")
F.group_norm(x, 3, eps="a")
nn.LayerNorm(3, eps="a")(x)
nn.GroupNorm(3, 3, eps="a")(x)
F.batch_norm(x, None, None, training=True, eps="a")
F.leaky_relu(x, "a")
F.leaky_relu(x, negative_slope="a", inplace=True)
F.leaky_relu(x, None)
F.leaky_relu(x, torch.ones(2))
F.leaky_relu(x, [1])
F.leaky_relu_(x, "a")
F.elu(x, "a")
F.elu(x, None)
F.celu(x, "a")
F.hardtanh(x, 0, "a")
F.glu(x, "a")
F.smooth_l1_loss(x, x, beta="a")
F.huber_loss(x, x, delta="a")
F.kl_div(x, "a")
F.pad("a", (1, 1))
F.pad(x, (1, 1), value=1j)
F.dropout("a")
F.dropout(x, training="a")
F.interpolate(x[None], "a")
F.interpolate(x[None], 2.5)
F.interpolate(x[None], True)
F.interpolate(x[None], scale_factor="a")
F.interpolate(x[None], scale_factor=["a"])
F.interpolate(x[None], scale_factor=torch.ones(2))
F.interpolate(x[None], (2.5,))
F.interpolate(x[None, None], (2, "a"))
F.interpolate(x[None, None], [2, True])
F.interpolate(x[None, None], "a", mode="bilinear")
F.interpolate(x[None], 2, mode="linear", align_corners=1)
F.interpolate(x[None, None], 2, mode="bilinear", align_corners="a")
F.interpolate(x[None], "a", mode="nearest-exact")
x.resize_(-1)
x.resize_(2, -1)
""")
def wrong_kinds(torch, line):
    return evaluate(torch, line, x=torch.ones(2, 3))
