"""Dimensions and sizes in lists of other classes: fx's own, a script's, named ones."""

from __future__ import annotations

import importlib
from collections import namedtuple

from tests.oracle import case, evaluate

Pair = namedtuple("Pair", "first second")


class Own(list):
    """A list that is no key of a dict."""


CALLS = """
x.sum(P)
x.mean(P, keepdim=True)
x.amax(dim=P)
x.std(P)
torch.logsumexp(x, P)
torch.count_nonzero(x, P)
x.flip(P)
x.roll(P, P)
x.permute(0, 3, 1, 2).reshape(K(4, 6)).shape
x.movedim(P, K(2, 3)).shape
x.squeeze(P).shape
torch.tensordot(x, x, K(P, P)).shape
torch.fft.fft2(x, dim=P).abs()
torch.linalg.vector_norm(x, dim=P)
torch.zeros(P), x.new_ones(P), torch.full(P, 2.0)
F.pad(x, P).shape
F.layer_norm(x, K(3, 4)).shape
F.conv2d(x, torch.ones(1, 2, 1, 1), stride=P, padding=P).shape
F.avg_pool2d(x, P).shape
F.max_pool2d(x, P, P).shape
F.interpolate(x, size=P).shape
x.split(K(1, 1), dim=1)[0].shape
x.expand(K(2, 2, 3, 4)).shape
torch.einsum("abcd,abce->de", K(x, x)).shape
torch.meshgrid(K(x[0, 0, 0], x[0, 0, 1]), indexing="ij")[0].shape
torch.cat(K(x, x)).shape
torch.nn.Unflatten(1, K(2, 1))(x).shape
"""

KINDS = {
    "immutable": lambda torch: (
        lambda *v: torch.fx.immutable_collections.immutable_list(v)
    ),
    "own": lambda torch: lambda *v: Own(v),
    "named": lambda torch: lambda *v: Pair(*v) if len(v) == 2 else v,
}


@case.over(
    call=[line for line in CALLS.splitlines() if line],
    kind=[*KINDS],
)
def of_a_class(torch, call, kind):
    importlib.import_module(f"{torch.__name__}.fx.immutable_collections")
    K = KINDS[kind](torch)
    x = torch.arange(24.0).reshape(1, 2, 3, 4)
    for _ in range(2):  # known, the second time
        yield evaluate(torch, call, x=x, K=K, P=K(1, 2))
