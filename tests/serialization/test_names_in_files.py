"""What files call classes and functions, so that each side reads the other's."""

from __future__ import annotations

import functools
import importlib
import io
import pickletools
import zipfile
from pathlib import Path

import pytest

import torchshim
from tests.oracle import case

#: What PyTorch once made of `functions`, by `torch.save(functions(torch), FUNCTIONS)`.
FUNCTIONS = Path(__file__).with_name("functions.pt")


def names_in(saved):
    """The classes and functions that a file names."""
    with zipfile.ZipFile(io.BytesIO(saved)) as archive:
        name = next(n for n in archive.namelist() if n.endswith("data.pkl"))
        pickled = archive.read(name)
    found = [arg for op, arg, _ in pickletools.genops(pickled) if op.name == "GLOBAL"]
    return sorted({*found})


MADE = {
    "max": "torch.eye(2).max(0)",
    "svd": "torch.linalg.svd(torch.eye(2))",
    "histogramdd": "torch.histogramdd(torch.eye(2), [2, 2])",
    "attention": "nn.MultiheadAttention(4, 2)",
    "transformer": "nn.Transformer(4, 2, 1, 1, 8)",
    "pixels": "nn.ModuleList([nn.PixelShuffle(2), nn.PixelUnshuffle(2)])",
    "channels": "nn.ChannelShuffle(2)",
    "lazy": "nn.ModuleList([nn.LazyConv2d(3, 2), nn.LazyConvTranspose1d(3, 2)])",
    "lazy linear": "nn.LazyLinear(3)",
    "spectral": "nn.utils.spectral_norm(nn.Linear(2, 2))",
    "weight norm": "nn.utils.weight_norm(nn.Linear(2, 2))",
    "averages": "torch.optim.swa_utils.AveragedModel(nn.Linear(1, 1))",
    "learning rates": "torch.optim.swa_utils.SWALR(torch.optim.SGD([x], lr=0.1), 0.05)",
    "cosine": "torch.optim.lr_scheduler.CosineAnnealingLR(torch.optim.SGD([x]), 5)",
    "one cycle": "torch.optim.lr_scheduler.OneCycleLR(torch.optim.SGD([x]), 1.0, 5)",
    "adam": "torch.optim.Adam([x])",
    "normal": "torch.distributions.Normal(torch.zeros(1), torch.ones(1))",
    "data": "torch.utils.data.TensorDataset(torch.ones(2))",
    "packed": "nn.utils.rnn.pack_sequence([torch.ones(2)])",
    "pruned": "importlib.import_module(f'{torch.__name__}.nn.utils.prune')"
    ".l1_unstructured(nn.Linear(2, 2), 'weight', 1)",
    "recurrent": "nn.ModuleList([nn.GRU(2, 3), nn.LSTM(2, 3)])",
}


@case(warnings=False).over(*MADE)
def names_of_objects(torch, kind):
    x = torch.zeros(1, requires_grad=True)
    scope = {"torch": torch, "nn": torch.nn, "x": x, "importlib": importlib}
    file = io.BytesIO()
    torch.save(eval(MADE[kind], scope), file)
    return names_in(file.getvalue())


@case
def named_results_from_sequences(torch):
    kind = torch.return_types.max
    a, b = torch.ones(1), torch.zeros(1)
    yield kind((a, b)), kind([a, b], {}), kind(sequence=iter((a, b)), dict={})
    for args in ((a, b), (1, 2), ((a,),), ((a, b, a),), (), (1,), ((a, b), None)):
        with pytest.raises(TypeError) as caught:
            kind(*args)
        yield str(caught.value)
    found = torch.eye(2).max(0)
    yield found.__reduce__()[1][1], kind(found), type(found)(found)


def functions(torch):
    """Functions as attributes of models may be, and results with names."""
    F = torch.nn.functional
    return {
        "tanh": torch.tanh,
        "softmax": functools.partial(torch.softmax, dim=0),
        "list": [torch.sin, F.gelu, F.softplus, F.logsigmoid, torch.linalg.inv],
        "method": torch.Tensor.relu,
        "max": torch.eye(2).max(0),
        "qr": torch.linalg.qr(torch.eye(2)),
    }


def test_functions_that_pytorch_saved():
    found = torchshim.load(FUNCTIONS, weights_only=False)
    wanted = functions(torchshim)
    x = torchshim.tensor([[0.5, 1.0], [-1.0, 2.0]])
    for name in ("tanh", "softmax", "method"):
        assert found[name](x).equal(wanted[name](x))
    for mine, own in zip(found["list"], wanted["list"], strict=True):
        assert mine(x).equal(own(x))
    for name in ("max", "qr"):
        assert repr(found[name]) == repr(wanted[name])
        assert type(found[name]) is type(wanted[name])
