"""Files with nested tensors that either engine wrote, read by either.

`nested.pt` was written by PyTorch, with `written`.
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import pytest

import torchshim
from tests import oracle
from tests.nested import seen
from tests.oracle import case

KEPT = Path(__file__).parent / "nested.pt"


def written(torch: Any) -> dict[str, Any]:
    """Nested tensors of both layouts, leaves with and without gradients, and views."""
    parts = [torch.arange(6.0).view(2, 3), torch.ones(3, 3)]
    start, rows = torch.tensor([0, 1, 2]), torch.arange(12.0).view(3, 4)
    make = torch.nested.nested_tensor
    return {
        "jagged": make(parts, layout=torch.jagged),
        "leaf": make(parts, layout=torch.jagged, requires_grad=True),
        "holes": torch.nested.narrow(rows, 1, start, 2, layout=torch.jagged),
        "turned": make(parts, layout=torch.jagged).transpose(1, 2),
        "strided": make(parts),
        "strided turned": make(parts).transpose(1, 2),
    }


@case(warnings=False)
def kept_file(torch):
    # (PyTorch reads such files with `weights_only` once its compiler is imported.)
    return {k: seen(v) for k, v in torch.load(KEPT, weights_only=False).items()}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_weights_alone_are_the_same() -> None:
    whole = torchshim.load(KEPT, weights_only=False)
    for name, value in torchshim.load(KEPT).items():
        pairs = zip(value.unbind(), whole[name].unbind(), strict=True)
        assert all(torchshim.equal(a.detach(), b.detach()) for a, b in pairs), name


@pytest.mark.live
def test_exchange_live() -> None:
    torch: Any = oracle.find_torch()
    for writer, reader in ((torch, torchshim), (torchshim, torch)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            file = io.BytesIO()
            writer.save(written(writer), file)
            file.seek(0)
            found = reader.load(file, weights_only=False)
            for name, value in written(reader).items():
                pairs = zip(value.unbind(), found[name].unbind(), strict=True)
                assert all(reader.equal(a, b) for a, b in pairs), name
                assert value.requires_grad == found[name].requires_grad
