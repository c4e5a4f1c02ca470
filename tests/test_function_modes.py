"""Modes of functions: what they see, change and pass by."""

from __future__ import annotations

import threading

import torchshim
from tests.oracle import attempt, case
from tests.test_overrides import logging_subclass, name_of


class Noting:
    """Makes a mode that notes what is called, and says what it is."""

    def __init__(self, torch, seen, name="mode"):
        class Mode(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                seen.append((name, func.__name__, len(args), kwargs or {}))
                return func(*args, **(kwargs or {}))

        self.mode = Mode()


@case
def modes(torch):
    """Modes see functions of plain tensors, and functions without tensors."""
    seen: list = []
    p = torch.ones(2)
    mode = Noting(torch, seen).mode
    with mode as given:
        torch.zeros(2)
        torch.tensor([1])
        p + 1
        p.add(1)
        p[0]
        p.float()
        p.sum().item()
        torch.arange(3)
        torch.cat([p, p])
        torch.is_tensor(p)
        torch.get_default_dtype()
        current = torch.overrides._get_current_function_mode()
    p + 1
    yield given is mode, current is mode
    yield seen[:], torch.overrides._get_current_function_mode()
    seen.clear()
    with Noting(torch, seen, "outer").mode, Noting(torch, seen, "inner").mode:
        torch.add(p, 1)
        with torch._C.DisableTorchFunction():
            p + 2
        with torch._C.DisableTorchFunctionSubclass():
            p + 3
    yield seen


@case
def modes_that_change_results(torch):
    class Doubling(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return result * 2 if func is torch.ones else result

    class Refusing(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    p = torch.ones(1)
    with Doubling():
        made = torch.ones(2), torch.zeros(2) + torch.ones(2)
    yield made
    with Refusing():
        error = attempt(torch.zeros, 2)
        others = attempt(lambda: p + 1), attempt(torch.nn.functional.relu, p)
    yield type(error), str(error).partition("mode object")[0], name_of(others)
    with torch.overrides.BaseTorchFunctionMode():
        made = torch.ones(2) + 1
    yield made
    error = attempt(torch.overrides._pop_mode)
    yield type(error)


@case
def functions_of_others(torch):
    """`handle_torch_function`, `wrap_torch_function`, `redispatch_function`."""
    seen: list = []
    kind = logging_subclass(torch, seen)
    x, p = torch.ones(2).as_subclass(kind), torch.ones(2)

    def mine(a, b=1):
        if torch.overrides.has_torch_function((a,)):
            return torch.overrides.handle_torch_function(mine, (a,), a, b=b)
        return a * b

    @torch.overrides.wrap_torch_function(lambda a: (a,))
    def wrapped(a):
        return a + 0

    yield mine(p), name_of(mine(x)), name_of(wrapped(x)), wrapped(p)
    yield seen[:]
    seen.clear()

    class Skipping(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return torch.overrides.redispatch_function(func, types, args, kwargs)

    y = torch.ones(2).as_subclass(Skipping)

    def scaled(a, b):
        if torch.overrides.has_torch_function((a, b)):
            return torch.overrides.handle_torch_function(scaled, (a, b), a, b)
        return a * b + 1

    yield scaled(y, y), seen
    seen.clear()

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            with self:
                return torch.overrides.redispatch_function(func, types, args, kwargs)

    with Mode():
        given = {scaled: (p, p), torch.relu: (p,), torch.stack: ([p, p],)}
        for function in given:
            args = given[function]
            yield function(*args), seen[:]
            seen.clear()


@case(warnings=False)
def modes_whose_handler_is_of_the_class(torch):
    class OfClass(torch.overrides.TorchFunctionMode):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return 5

    class Static(torch.overrides.TorchFunctionMode):
        @staticmethod
        def __torch_function__(func, types, args=(), kwargs=None):
            return 5

    x = torch.ones(1)
    for mode in (OfClass, Static):
        for call in (
            lambda: torch.add(x, x),
            lambda: torch.ones(2),
            lambda: x[0],
            lambda: torch.nn.functional.relu(x),  # (not C++: no check)
            lambda: torch.einsum("i", x),
        ):

            def within(mode=mode, call=call):
                with mode():
                    return call()

            yield attempt(within)


@case
def modes_see_questions_about_dtypes(torch):
    seen: list = []
    with Noting(torch, seen).mode:
        yield torch.can_cast(torch.int32, torch.float32)
        yield torch.promote_types(torch.int32, torch.float32)
    yield seen


@case
def overriding_that_is_on_again(torch):
    class Named(torch.Tensor):
        pass

    x = torch.zeros(2).as_subclass(Named)
    with torch._C.DisableTorchFunctionSubclass():
        on = torch._C._EnableTorchFunction()
        yield type(x + 1).__name__, torch._C._is_torch_function_enabled()
        del on
        yield type(x + 1).__name__, torch._C._is_torch_function_enabled()


def test_modes_belong_to_a_thread():
    torch, seen = torchshim, []
    with Noting(torch, seen).mode:
        thread = threading.Thread(target=lambda: torch.zeros(1) + 1)
        thread.start()
        thread.join()
    assert not seen
