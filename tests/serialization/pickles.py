"""What `pickle` itself keeps of tensors and modules, as PyTorch wrote it once."""

from __future__ import annotations

import contextlib
import io
import pickle
import warnings
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "files" / "plain.pickle"


def values(torch: Any) -> dict[str, Any]:
    """The values of the file."""
    torch.manual_seed(0)
    base = torch.arange(6.0).view(2, 3)
    marked = torch.ones(2, dtype=torch.bfloat16)
    marked.note = "mine"
    layer = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5, momentum=0.9)
    layer(torch.ones(3, 2)).sum().backward()
    optimizer.step()
    return {
        "views": [base, base.t(), base[1]],
        "kinds": [torch.tensor(1, dtype=d) for d in (torch.int8, torch.complex64)],
        "conjugate": torch.tensor([1 + 2j]).conj(),
        "marked": marked,
        "parameter": torch.nn.Parameter(torch.ones(2), requires_grad=False),
        "sparse": torch.eye(2).to_sparse(),
        "meta": torch.empty(2, 3, device="meta"),
        "storage": base._typed_storage(),
        "facts": [torch.float16, base.shape, base.device, base.layout],
        "optimizer": [layer, optimizer],
    }


def look(torch: Any, read: dict[str, Any]) -> None:
    """Prints what was read."""
    base, turned, row = read["views"]
    row += 10
    print(base.tolist(), turned.tolist())
    print(read["kinds"], read["conjugate"].is_conj(), read["conjugate"])
    print(read["marked"], read["marked"].note)
    print(read["parameter"], type(read["parameter"]) is torch.nn.Parameter)
    print(read["sparse"], read["meta"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # typed storages will go
        print(read["storage"].tolist(), read["storage"].dtype)
    print(read["facts"])
    layer, optimizer = read["optimizer"]
    print(layer, optimizer.param_groups[0]["params"][0] is layer[0].weight)
    print(layer[0].weight.dtype, optimizer.state[layer[0].bias].keys())
    layer(torch.ones(3, 2)).sum().backward()
    optimizer.step()


def text(torch: Any) -> str:
    """What `look` prints of the file."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        look(torch, pickle.loads(FILE.read_bytes()))
    return out.getvalue()


if __name__ == "__main__":
    import torch

    if "torchshim" in torch.__version__:
        print(text(torch), end="")
    else:
        FILE.write_bytes(pickle.dumps(values(torch)))
        FILE.with_suffix(".txt").write_text(text(torch))
