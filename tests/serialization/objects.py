"""What checkpoints hold: made by either engine, and shown so that they compare.

The files in `files/` were written by `python -m tests.serialization.objects`, under an
interpreter with torch 2.13.0: those of PyTorch and, in `files/torchshim`, ours.
"""

from __future__ import annotations

import collections
import warnings
from pathlib import Path
from typing import Any

FILES = Path(__file__).parent / "files"
DTYPES = (
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 "
    "complex128 uint16 uint32 uint64 float8_e5m2 float8_e4m3fn"
).split()


def network(torch: Any) -> Any:
    """Layers with parameters, buffers, aliases and settings; the same each time."""
    nn = torch.nn
    net = nn.Sequential(
        collections.OrderedDict(
            first=nn.Linear(4, 3),
            norm=nn.BatchNorm1d(3),
            act=nn.GELU(),
            drop=nn.Dropout(0.3),
            conv=nn.Conv2d(1, 2, 3, padding="same"),
            table=nn.Embedding(3, 2, padding_idx=0),
            named=nn.ModuleDict({"pool": nn.MaxPool2d(2)}),
            loose=nn.ParameterList([nn.Parameter(torch.ones(2))]),
        )
    )
    with torch.no_grad():
        for i, value in enumerate(net.state_dict().values()):
            value.copy_(torch.arange(value.numel()).reshape(value.shape) + i)
    net.first.bias.requires_grad_(False)
    net.tied = net.first
    return net.eval()


def stepped(torch: Any, name: str, **options: Any) -> Any:
    """An optimizer that has a state."""
    layer = torch.nn.Linear(2, 1)
    with torch.no_grad():
        layer.weight.fill_(0.5)
        layer.bias.fill_(0.25)
    optimizer = getattr(torch.optim, name)(layer.parameters(), **options)
    layer(torch.ones(3, 2)).sum().backward()
    optimizer.step()
    return optimizer


def objects(torch: Any) -> dict[str, Any]:
    """One object for each thing that files can hold."""
    x = torch.arange(12.0).reshape(3, 4)
    marked = torch.arange(2.0)
    marked.note = "mine"
    image = torch.arange(24.0).reshape(1, 2, 3, 4)
    adam = stepped(torch, "Adam", lr=0.1)
    return {
        "views": [x, x[1:], x.t(), x[:, 1], x[::2, 1::2], x.view(2, 6), x[0, 0]],
        "piece": x[1:, 2],
        "expanded": torch.ones(2, 1).expand(2, 3),
        "channels_last": image.to(memory_format=torch.channels_last),
        "scalars": [torch.tensor(3.5), torch.tensor(True), torch.empty(0, 3)],
        "dtypes": [torch.tensor([0, 1, 3]).to(getattr(torch, d)) for d in DTYPES],
        "conjugate": torch.tensor([1 + 2j]).conj(),
        "grad": x.clone().requires_grad_(),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "buffer": torch.nn.Buffer(torch.ones(2), persistent=False),
        "marked": marked,
        "constants": {
            "size": torch.Size([1, 2]),
            "dtype": torch.float32,
            "device": [torch.device("cpu"), torch.device("cuda", 1)],
            "layout": torch.strided,
        },
        "containers": {
            "ordered": collections.OrderedDict(a=1, b=x),
            "counter": collections.Counter("aab"),
            "bytes": [b"abc", bytearray(b"xyz")],
            "numbers": [1.5, 2 + 3j, 1 << 100, -1, 1 << 40, True, None],
            "sets": [{1}, (1, (2, ()))],
            5: "key",
        },
        "generator": torch.Generator().manual_seed(3),
        "storage": [x.clone().untyped_storage(), x],
        "state_dict": network(torch).state_dict(),
        "module": network(torch),
        "optimizer": adam,
        "optimizer_state": adam.state_dict(),
        "momentum": stepped(torch, "SGD", lr=0.1, momentum=0.9, nesterov=True),
        "scheduler": torch.optim.lr_scheduler.StepLR(adam, 3),
        "dataset": torch.utils.data.TensorDataset(x),
        "function": torch.nn.functional.relu,
        "class": torch.nn.Linear,
    }


# What PyTorch's default, ``weights_only=True``, loads.
PLAIN = (
    "views piece expanded channels_last scalars dtypes conjugate grad parameter buffer "
    "marked constants containers state_dict optimizer_state"
).split()


def show(torch: Any, value: Any) -> Any:
    """A value with all that a file should keep of it."""
    if isinstance(value, torch.Tensor):
        return (
            type(value).__name__,
            value.detach(),
            value.stride(),
            value.storage_offset(),
            value.untyped_storage().nbytes(),
            value.requires_grad,
            getattr(value, "note", None),
        )
    if isinstance(value, dict):
        return type(value).__name__, [(k, show(torch, v)) for k, v in value.items()]
    if type(value) in (list, tuple):
        return [show(torch, v) for v in value]
    if isinstance(value, torch.nn.Module):
        return repr(value), value.training, show(torch, value.state_dict())
    if isinstance(value, torch.Generator):
        return value.initial_seed(), torch.rand(2, generator=value)
    if torch.is_storage(value):
        return value.tolist()
    if isinstance(value, torch.utils.data.TensorDataset):
        return show(torch, value.tensors)
    if hasattr(value, "state_dict") and not isinstance(value, type):
        state = value.state_dict()
        return type(value).__name__, show(torch, state)
    return value.__name__ if callable(value) else value


def write(torch: Any, folder: Path) -> None:
    """The files, in both formats."""
    folder.mkdir(exist_ok=True)
    for name, value in objects(torch).items():
        torch.save(value, folder / f"{name}.pt")
    for name in ("views", "dtypes", "module", "optimizer_state"):
        value = objects(torch)[name]
        if name == "dtypes":
            value = value[:12]  # PyTorch reads the younger ones in new files only
        torch.save(
            value, folder / f"{name}.legacy.pt", _use_new_zipfile_serialization=False
        )


if __name__ == "__main__":
    import torch

    import torchshim

    warnings.simplefilter("ignore")
    write(torch, FILES)
    write(torchshim, FILES / "torchshim")
