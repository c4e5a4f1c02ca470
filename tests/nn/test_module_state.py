"""State dicts of modules: what they hold, how they are loaded, their hooks."""

from __future__ import annotations

import gc
import weakref
from collections import OrderedDict
from typing import Any

from tests.nn.small_modules import scale_class, tree
from tests.oracle import attempt, case


@case
def state_dict(torch):
    m = tree(torch)
    state = m.state_dict()
    yield state, type(state), state._metadata, type(state._metadata)
    yield state["a.factor"].data_ptr() == m.a.factor.data_ptr()
    yield m.state_dict(prefix="p.", keep_vars=True)["p.a.factor"] is m.a.factor
    into = OrderedDict()
    yield m.state_dict(destination=into) is into, list(into), hasattr(into, "_metadata")
    yield list(m.state_dict(OrderedDict(), "old."))


@case
def load_state_dict(torch):
    m, other = tree(torch), tree(torch)
    with torch.no_grad():
        other.a.factor.fill_(7)
        other.a.calls.fill_(9)
    factor = m.a.factor
    yield m.load_state_dict(other.state_dict())
    yield m.a.factor is factor, m.a.factor, m.a.calls
    state = other.state_dict()
    del state["a.calls"], state["c.inner.factor"]
    state["a.more"] = torch.ones(1)
    state["z.deep.key"] = torch.ones(1)
    state["stray"] = torch.ones(1)
    yield attempt(m.load_state_dict, state)
    yield m.load_state_dict(state, strict=False)
    yield repr(m.load_state_dict(state, strict=False))
    state["a.factor"] = torch.ones(5)
    state["c.tied"] = "text"
    yield attempt(m.load_state_dict, state)
    yield attempt(m.load_state_dict, state, False)
    yield attempt(m.load_state_dict, [1])


@case
def loaded_state_is_kept_by_nobody(torch):
    class Noted(torch.nn.Module):
        def set_extra_state(self, state):
            pass

        def get_extra_state(self):
            return 0

    class Note:
        pass

    m, note = Noted(), Note()
    found = weakref.ref(note)
    gc.collect()
    gc.disable()
    try:
        m.load_state_dict({"_extra_state": note})
        del note
        yield found() is None
    finally:
        gc.enable()


@case
def load_by_assignment(torch):
    m = scale_class(torch)()
    state = {"factor": torch.zeros(2), "calls": torch.tensor(3)}
    factor = m.factor
    yield m.load_state_dict(state, assign=True)
    yield m.factor is factor, m.factor, m.calls is state["calls"], type(m.factor)
    own = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    m.load_state_dict({"factor": own, "calls": torch.tensor(1)}, assign=True)
    yield m.factor is own, own.requires_grad


@case
def load_scalar_with_a_dimension(torch):
    m = torch.nn.Module()
    m.p = torch.nn.Parameter(torch.tensor(1.0))
    m.load_state_dict({"p": torch.tensor([5.0])})
    yield m.p
    yield attempt(m.load_state_dict, {"p": torch.tensor([5.0, 6.0])})


@case
def load_other_dtype(torch):
    m = scale_class(torch)()
    m.load_state_dict({"factor": torch.tensor([1, 2]), "calls": torch.tensor(2.7)})
    return m.factor, m.calls


@case
def load_onto_meta(torch):
    m = scale_class(torch)().to("meta")
    m.load_state_dict({"factor": torch.ones(2), "calls": torch.tensor(1)})
    return m.factor.is_meta


@case
def versions(torch):
    class New(torch.nn.Module):
        _version = 3

        def _load_from_state_dict(
            self, state: Any, prefix: str, metadata: Any, *rest: Any
        ) -> None:
            print(prefix, metadata, rest[0])
            super()._load_from_state_dict(state, prefix, metadata, *rest)

    m = torch.nn.Module()
    m.sub = New()
    m.sub.p = torch.nn.Parameter(torch.ones(1))
    state = m.state_dict()
    yield state._metadata
    m.load_state_dict(state)
    m.load_state_dict(dict(state))


@case
def extra_state(torch):
    class Counter(torch.nn.Module):
        def get_extra_state(self) -> Any:
            return {"n": self.n}

        def set_extra_state(self, state: Any) -> None:
            self.n = state["n"]

    m = torch.nn.Module()
    m.sub = Counter()
    m.sub.n = 3
    state = m.state_dict()
    yield state
    m.sub.n = 0
    m.load_state_dict(state)
    yield m.sub.n
    yield attempt(m.load_state_dict, {})
    yield attempt(torch.nn.Module().load_state_dict, {"_extra_state": 1})


@case
def state_dict_hooks(torch):
    m = tree(torch)
    a = m.a
    a.register_state_dict_pre_hook(lambda mod, prefix, keep: print("pre", prefix, keep))
    a.register_state_dict_post_hook(
        lambda mod, state, prefix, meta: state.update({prefix + "more": 1})
    )
    yield list(m.state_dict())

    def replaces(mod: Any, state: Any, prefix: str, meta: Any) -> Any:
        return {"only": len(state)}

    handle = m._register_state_dict_hook(replaces)
    yield m.state_dict()
    handle.remove()
    m.register_state_dict_post_hook(replaces)
    yield attempt(m.state_dict)
    yield attempt(m._register_state_dict_hook, replaces)


@case
def load_state_dict_hooks(torch):
    m = scale_class(torch)()
    state = m.state_dict()
    m._register_load_state_dict_pre_hook(lambda *args: print(len(args), args[1]))

    def pre(module: Any, state: Any, prefix: str, *rest: Any) -> None:
        print(type(module).__name__, list(state))
        state[prefix + "factor"] = state.pop(prefix + "old")

    m.register_load_state_dict_pre_hook(pre)
    m.register_load_state_dict_post_hook(lambda mod, keys: keys.missing_keys.clear())
    yield m.load_state_dict({"old": torch.zeros(2)})
    yield m.factor, list(state)
    m.register_load_state_dict_post_hook(lambda mod, keys: keys)
    yield attempt(m.load_state_dict, {"old": torch.zeros(2)})
