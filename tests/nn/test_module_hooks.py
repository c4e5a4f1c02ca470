"""Calls of modules, and the hooks around them."""

from __future__ import annotations

import os
import pickle
import warnings
from collections import OrderedDict
from typing import Any

from tests.nn.small_modules import scale_class, show_grads
from tests.oracle import attempt, case


@case
def forward_hooks(torch):
    m = scale_class(torch)()
    log: list[Any] = []
    m.register_forward_pre_hook(lambda mod, args: log.append(("pre", args[0].sum())))
    m.register_forward_pre_hook(lambda mod, args: args[0] + 1)
    m.register_forward_pre_hook(lambda mod, args: log.append("first"), prepend=True)
    m.register_forward_hook(lambda mod, args, out: log.append(("post", out)))
    last = m.register_forward_hook(lambda mod, args, out: out * 10)
    m.register_forward_hook(lambda mod, args, out: log.append("front"), prepend=True)
    yield m(torch.ones(2)), log
    last.remove()
    last.remove()
    yield m(torch.ones(2)), len(m._forward_hooks)


@case
def hooks_with_keywords(torch):
    class Shift(torch.nn.Module):
        def forward(self, x: Any, by: int = 0) -> Any:
            return x + by

    m = Shift()
    pre = m.register_forward_pre_hook(
        lambda mod, args, kwargs: (args, {"by": kwargs["by"] + 1}), with_kwargs=True
    )
    m.register_forward_hook(
        lambda mod, args, kwargs, out: (out, kwargs), with_kwargs=True
    )
    yield m(1, by=2)
    pre.remove()
    yield m._forward_pre_hooks_with_kwargs
    m.register_forward_pre_hook(lambda mod, args, kwargs: args, with_kwargs=True)
    yield attempt(m, 1, by=2)


@case
def always_called_hooks(torch):
    class Fails(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("no")

    def raises(mod: Any, args: Any, out: Any) -> None:
        raise RuntimeError("hook")

    m = Fails()
    m.register_forward_hook(lambda mod, args, out: print("skipped"))
    m.register_forward_hook(
        lambda mod, args, out: print("called", args, out), always_call=True
    )
    m.register_forward_hook(raises, always_call=True)
    m.register_forward_hook(
        lambda mod, args, kw, out: print("kw", kw), always_call=True, with_kwargs=True
    )
    yield attempt(m, 1)
    m = torch.nn.Module()
    m.forward = lambda x: x
    m.register_forward_hook(raises, always_call=True)
    yield attempt(m, 1)


@case
def global_forward_hooks(torch):
    hooks = torch.nn.modules.module
    m = scale_class(torch)()
    handles = [
        hooks.register_module_forward_pre_hook(lambda mod, args: (args[0] + 1,)),
        hooks.register_module_forward_hook(
            lambda mod, args, kw, out: print(kw), with_kwargs=True
        ),
        hooks.register_module_forward_hook(
            lambda mod, args, out: print("always", out), always_call=True
        ),
    ]
    yield m(torch.ones(2))
    yield type(attempt(m, "text")).__name__
    for handle in handles:
        handle.remove()
    yield m(torch.ones(2))


@case
def global_hooks_forgotten_by_new_dicts(torch):
    from collections import OrderedDict

    hooks = torch.nn.modules.module
    m, x = torch.nn.Sigmoid(), torch.zeros(2, requires_grad=True)
    handle = hooks.register_module_forward_hook(lambda mod, args, out: out * 2)
    hooks.register_module_full_backward_hook(lambda mod, given, got: (got[0] * 5,))
    m(x).sum().backward()
    yield x.grad, hooks._global_is_full_backward_hook
    hooks._global_forward_hooks = OrderedDict()
    hooks._global_backward_hooks = OrderedDict()
    hooks._global_is_full_backward_hook = None
    yield m(x), len(hooks._global_forward_hooks), torch.autograd.grad(m(x).sum(), x)
    handle.remove()
    with hooks.register_module_forward_hook(lambda mod, args, out: out * 3):
        yield m(x)


@case
def forward_set_on_the_instance(torch):
    m = scale_class(torch)()
    m.forward = lambda x: "mine"
    return m(1)


@case
def full_backward_hooks(torch):
    m = scale_class(torch)()
    m.register_full_backward_hook(show_grads("hook"))
    m.register_full_backward_pre_hook(show_grads("pre"))
    x = torch.ones(2, requires_grad=True)
    y = m(x)
    yield y
    y.sum().backward()
    yield x.grad, m.factor.grad


@case
def backward_hooks_that_replace(torch):
    m = scale_class(torch)()
    m.register_full_backward_hook(lambda mod, gi, go: (gi[0] * 100,))
    m.register_full_backward_hook(show_grads("second"))
    m.register_full_backward_hook(show_grads("first"), prepend=True)
    m.register_full_backward_pre_hook(lambda mod, go: (go[0] * 3,))
    x = torch.ones(2, requires_grad=True)
    m(x).sum().backward()
    return x.grad, m.factor.grad


@case
def backward_hooks_with_wrong_lengths(torch):
    m = scale_class(torch)()
    x = torch.ones(2, requires_grad=True)
    handle = m.register_full_backward_hook(lambda mod, gi, go: ())
    yield attempt(m(x).sum().backward)
    handle.remove()
    m.register_full_backward_pre_hook(lambda mod, go: (1, 2))
    yield attempt(m(x).sum().backward)


@case
def backward_hooks_without_input_grads(torch):
    m = scale_class(torch)()
    handle = m.register_full_backward_hook(show_grads("hook"))
    m(torch.ones(2)).sum().backward()
    yield m.factor.grad
    handle.remove()
    m.register_full_backward_hook(lambda mod, gi, go: (torch.ones(2),))
    yield attempt(m(torch.ones(2)).sum().backward)


@case(warnings=False)
def place_of_the_warning_without_input_grads(torch):
    m = scale_class(torch)()
    m.register_full_backward_hook(lambda mod, gi, go: None)
    loss = m(torch.ones(2)).sum()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loss.backward()
    return [os.path.basename(w.filename) for w in caught]


@case
def backward_hooks_of_several_values(torch):
    class Two(torch.nn.Module):
        def forward(self, a: Any, n: int, b: Any) -> Any:
            return a * n, "text", b * 2

    m = Two()
    m.register_full_backward_hook(show_grads("hook"))
    a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    first, _, second = m(a, 3, b)
    (first + second).sum().backward()
    yield a.grad, b.grad
    with torch.no_grad():
        yield m(a, 3, b)
    first, _, _ = m(a, 3, torch.ones(1))
    first.backward()


@case
def backward_hook_on_other_results(torch):
    class Gives(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return {"y": x * 2}

    m = Gives()
    m.register_full_backward_hook(show_grads("hook"))
    x = torch.ones(1, requires_grad=True)
    m(x)["y"].backward()
    return x.grad


@case
def non_full_backward_hooks(torch):
    class One(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2

    class Chain(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return (x * 2).exp()

    class Nested(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return [x * 2]

    class Pair(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2, x * 3

    for cls in (One, Chain, Nested, Pair):
        m = cls()
        m.register_backward_hook(lambda mod, gi, go: print(type(mod).__name__))
        out = m((torch.ones(1, requires_grad=True)) * 1)
        while not hasattr(out, "backward"):
            out = out[0]
        out.backward()
    yield attempt(m.register_full_backward_hook, print)
    m = One()
    m.register_full_backward_hook(print)
    yield attempt(m.register_backward_hook, print)


@case
def global_backward_hooks(torch):
    hooks = torch.nn.modules.module
    pre = hooks.register_module_full_backward_pre_hook(show_grads("pre"))
    full = hooks.register_module_full_backward_hook(show_grads("full"))
    yield attempt(hooks.register_module_backward_hook, print)
    m = scale_class(torch)()
    m(torch.ones(2, requires_grad=True)).sum().backward()
    pre.remove()
    full.remove()
    m(torch.ones(2, requires_grad=True)).sum().backward()
    yield m.factor.grad


@case
def removable_handles(torch):
    hooks = torch.utils.hooks
    first, extra = OrderedDict(), OrderedDict()
    handle = hooks.RemovableHandle(first, extra_dict=extra)
    first[handle.id] = extra[handle.id] = 1
    with handle:
        yield len(first), len(extra)
    yield len(first), len(extra)
    two = hooks.RemovableHandle(first, extra_dict=[extra, first])
    yield two.id > handle.id
    first[two.id] = 2
    d, new = pickle.loads(pickle.dumps((first, two)))
    yield len(d), new.id == two.id
    new.remove()
    yield len(d), len(first)
    kind, next_id = hooks.RemovableHandle, hooks.RemovableHandle.next_id
    kind.next_id += 10
    yield kind(first).id - next_id, kind.next_id - next_id


@case
def what_backward_hooks_return(torch):
    m = torch.nn.Linear(2, 2)
    m.register_full_backward_hook(lambda m, gi, go: (gi[0][:, :1],))
    x = torch.ones(1, 2, requires_grad=True)
    yield attempt(m(x).sum().backward)
    m = torch.nn.Linear(2, 2)
    handle = m.register_full_backward_pre_hook(lambda m, go: (go[0][0],))
    yield type(handle).__module__.partition(".")[2]
    yield attempt(m(x).sum().backward)
