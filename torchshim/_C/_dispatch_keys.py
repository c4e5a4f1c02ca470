"""Names of the dispatcher's keys, for programs that mention them.

https://docs.pytorch.org/docs/2.13/library.html
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

# Kinds of tensors that each backend has a key for, and what the kind goes by.
_KINDS = {
    "": "Dense",
    "Quantized": "Quantized",
    "Sparse": "Sparse",
    "SparseCsr": "SparseCsr",
    "NestedTensor": "NestedTensor",
    "Autograd": "AutogradFunctionality",
}
_BACKENDS = (
    "CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 "
    "PrivateUse3 Meta"
).split()
_FIRST = 48
_STEP = len(_BACKENDS) + 1
# Those of no backend, with their numbers.
_OTHERS = {
    "Undefined": 0,
    "Dense": 1,
    "Quantized": 5,
    "Sparse": 8,
    "SparseCsr": 9,
    "NestedTensor": 10,
    "BackendSelect": 11,
    "Python": 13,
    "FuncTorchDynamicLayerBackMode": 14,
    "Functionalize": 15,
    "Conjugate": 16,
    "Negative": 17,
    "ZeroTensor": 18,
    "ADInplaceOrView": 19,
    "AutogradOther": 20,
    "AutogradFunctionality": 21,
    "AutogradNestedTensor": 22,
    "AutocastCPU": 24,
    "AutocastXPU": 27,
    "AutocastIPU": 28,
    "AutocastHPU": 29,
    "AutocastMPS": 31,
    "AutocastCUDA": 32,
    "AutocastPrivateUse1": 33,
    "FuncTorchBatched": 34,
    "FuncTorchVmapMode": 36,
    "FuncTorchGradWrapper": 39,
    "PythonTLSSnapshot": 41,
    "FuncTorchDynamicLayerFrontMode": 42,
    "PreDispatch": 45,
    "PythonDispatcher": 46,
    "Autograd": 150,
    "CompositeImplicitAutograd": 151,
    "FuncTorchBatchedDecomposition": 152,
    "CompositeImplicitAutogradNestedTensor": 153,
    "CompositeExplicitAutograd": 154,
    "CompositeExplicitAutogradNonFunctional": 155,
}


def _of_backends() -> Iterable[tuple[str, int]]:
    for i, (kind, group) in enumerate(_KINDS.items()):
        first = _FIRST + _STEP * i
        yield f"StartOf{group}Backends", first
        for k, backend in enumerate(_BACKENDS):
            yield kind + backend, first + 1 + k
        yield f"EndOf{group}Backends", first + len(_BACKENDS)


class _Named(enum.Enum):
    def __int__(self) -> int:
        number: int = self.value
        return number

    def __str__(self) -> str:
        return f"DispatchKey.{self.name}"


DispatchKey = _Named(
    "DispatchKey", [*_OTHERS.items(), *_of_backends()], module="torch._C"
)


def _rank(key: _Named) -> tuple[int, int]:
    """The place of a key in a set: that of its kind, then of its backend."""
    number = int(key)
    kind, backend = divmod(number - _FIRST, _STEP)
    if 0 <= kind < len(_KINDS):
        return _OTHERS[list(_KINDS.values())[kind]], backend
    return number, 0


class DispatchKeySet:
    """Several keys."""

    __module__ = "torch._C"

    def __init__(self, *keys: _Named) -> None:
        self._keys = frozenset(keys)

    def has(self, key: _Named) -> bool:
        return key in self._keys

    def add(self, key: _Named) -> DispatchKeySet:
        return DispatchKeySet(*self._keys, key)

    def remove(self, key: _Named) -> DispatchKeySet:
        return DispatchKeySet(*self._keys - {key})

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self._keys | other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self._keys & other._keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self._keys - other._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def __repr__(self) -> str:
        names = [key.name for key in sorted(self._keys, key=_rank)]
        return f"DispatchKeySet({', '.join(names)})"
