"""Instances of subclasses in files and copies: slots, states of their own, wrappers."""

from __future__ import annotations

import copy
import io
import sys
import types

from tests.oracle import attempt, case


def _classes(torch):
    """Classes that pickles find, as if a module had them."""

    class Slotted(torch.Tensor):
        __slots__ = ["inner", "other"]

        def new_empty(self, *size):
            return torch.empty(*size).as_subclass(type(self))

    class Wrapper(torch.Tensor):
        __slots__ = ["inner"]

        @staticmethod
        def __new__(cls, inner):
            made = torch.Tensor._make_subclass(cls, inner.to("meta"))
            made.inner = inner
            return made

        def clone(self):
            return type(self)(self.inner.clone())

    class Lost(Wrapper):
        def clone(self):
            return self.inner.clone()

    class Stateful(torch.Tensor):
        def __getstate__(self):
            return "state", self.__dict__

        def __setstate__(self, state):
            word, self.__dict__ = state
            self.told = word

    module = types.ModuleType("subclasses_in_files")
    for cls in (Slotted, Wrapper, Lost, Stateful):
        cls.__module__, cls.__qualname__ = module.__name__, cls.__name__
        setattr(module, cls.__name__, cls)
    sys.modules[module.__name__] = module
    return module


def _again(torch, obj, *safe):
    file = io.BytesIO()
    torch.save(obj, file)
    file.seek(0)
    with torch.serialization.safe_globals(list(safe)):
        return torch.load(file)


@case
def slots_and_states(torch):
    kinds = _classes(torch)
    x = torch.arange(3.0).as_subclass(kinds.Slotted)
    x.inner, x.note = torch.ones(2), "mine"
    for y in (_again(torch, x, kinds.Slotted), copy.deepcopy(x)):
        yield type(y).__name__, y.tolist(), y.inner, y.note, hasattr(y, "other")
        yield y.inner is x.inner
    z = torch.arange(2.0).as_subclass(kinds.Stateful)
    z.note = 4
    y = _again(torch, z, kinds.Stateful)
    yield type(y).__name__, y.tolist(), y.note, y.told


@case
def wrappers(torch):
    kinds = _classes(torch)
    x = kinds.Wrapper(torch.ones(2))
    x.note = [1]
    for y in (_again(torch, x, kinds.Wrapper), copy.deepcopy(x)):
        yield type(y).__name__, y.inner, y.device.type, y.note, y.note is x.note
    yield attempt(copy.deepcopy, kinds.Lost(torch.ones(2)))


class _Made:
    """What is saved as a tensor that nobody else has."""

    def __init__(self, tensor, function):
        self.tensor, self.function = tensor, function

    def __reduce__(self):
        made = self.tensor.clone()
        made[0] = 3
        made[1:].add_(1)
        return self.function, ([made, made[1:]],)


@case
def made_while_saving(torch):
    x = torch.arange(3.0)
    file = io.BytesIO()
    torch.save([_Made(x + i, list) for i in range(4)], file)
    file.seek(0)
    found = torch.load(file, weights_only=False)
    found[0][0][1] = 50
    yield found
