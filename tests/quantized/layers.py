"""Layers of integers, and what there is to see of one."""

from __future__ import annotations

import copy
import importlib
import io
import pickle
import warnings
from typing import Any

from tests.quantized.shown import shown


def load(torch: Any) -> None:
    """Imports the layers under the name of the module, without what they warn of."""
    warnings.simplefilter("ignore")
    for name in ("quantized.dynamic", "quantized.reference", "quantizable"):
        importlib.import_module(f"{torch.__name__}.ao.nn.{name}")
    for name in ("intrinsic.quantized.dynamic", "qat.dynamic", "intrinsic.qat"):
        importlib.import_module(f"{torch.__name__}.ao.nn.{name}")


def plain(value: Any) -> Any:
    """What is compared: packed weights by their class and by what they unpack to."""
    if type(value).__name__ == "ScriptObject":
        state = value.__getstate__()
        return str(value), plain(state[0])
    if type(value).__name__ == "PackedSequence":
        return plain(list(value))
    if isinstance(value, tuple):
        return tuple(plain(each) for each in value)
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return shown(value)


def seen(torch: Any, layer: Any, *inputs: Any) -> Any:
    """A layer's text, results, state, and the results of copies of it."""
    yield repr(layer)
    yield plain(layer(*inputs))
    state = layer.state_dict()
    yield plain(dict(state))
    again = copy.deepcopy(layer)
    torch.save(state, file := io.BytesIO())
    file.seek(0)
    again.load_state_dict(torch.load(file, weights_only=False))
    yield plain(again(*inputs))


def pickled(layer: Any, *inputs: Any) -> Any:
    """The results of a layer that was pickled."""
    return plain(pickle.loads(pickle.dumps(layer))(*inputs))
