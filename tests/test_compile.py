"""`torch.compile` and `torch.compiler`: the same functions and modules."""

from __future__ import annotations

import copy
import importlib
import pickle

import pytest

import torchshim
from tests.oracle import attempt, case, evaluate

# PyTorch's compiler changes its process for good: it switches the validation of
# distributions off and refuses `jit.trace`.
LIVE = False


def add(x):
    """One more."""
    return x + 1


@case(raises=(AssertionError, AttributeError), warnings=False).lines(
    """
    torch.compile(add, mode="x")
    torch.compile(add, mode="default", options={})
    torch.compile(add, backend="nope")
    torch.compile(add, backend="eager", mode="x")(torch.ones(1))
    torch.compile(add, dynamic="x")
    torch.compile(add, zzz=1)
    torch.compile(3)
    torch.compile(add, disable=True) is add
    torch.compile(add, backend="eager").__name__, torch.compile(add).__doc__
    torch.compile(add, backend="eager")._torchdynamo_orig_callable is add
    torch.compile(backend="eager", fullgraph=True)(add)(torch.ones(2))
    torch.compile(backend="eager")(nn.Linear(1, 1))
    torch.compile(nn.Linear, backend="eager") is nn.Linear
    torch.compile(nn.Linear(1, 1), disable=True)
    torch.compiler.is_compiling(), torch.compiler.is_dynamo_compiling()
    torch.compiler.is_exporting(), torch._dynamo.is_compiling()
    torch.compiler.list_backends()
    torch.compiler.reset(), torch._dynamo.reset()
    torch.compiler.disable(add)(torch.ones(1)), torch.compiler.disable()(add).__name__
    torch.compiler.disable(nn.Linear(1, 1))
    torch.compiler.allow_in_graph(add) is add
    torch.compiler.allow_in_graph(3)
    torch.compiler.assume_constant_result(add) is add
    torch.compiler.cudagraph_mark_step_begin()
    torch.compiler.get_default_backend()
    torch.compiler.set_default_backend(3)
    torch.compiler.set_enable_guard_collectives(False)
    torch.compiler.skip_guard_on_inbuilt_nn_modules_unsafe([])
    torch.compiler.nested_compile_region(add)(torch.ones(1))
    torch.compiler.wrap_numpy(add)(torch.ones(2))
    torch.compiler.save_cache_artifacts()
    torch._dynamo.config.suppress_errors, torch._dynamo.config.cache_size_limit
    torch._dynamo.config.zzz
    torch._inductor.config.coordinate_descent_tuning, torch._inductor.config.freezing
    hasattr(torch._inductor.config, "zzz"), torch._inductor.config.triton.cudagraphs
    setattr(torch._inductor.config, "zzz", 1)
    torch._inductor.config.triton.zzz
    setattr(torch._inductor.config.triton, "zzz", 1)
    torch._dynamo.optimize("eager")(add)(torch.ones(1))
    torch._dynamo.is_dynamo_supported()
    torch._dynamo.mark_dynamic(torch.ones(3), 0)
    """
)
def calls(torch, line):
    return evaluate(torch, line, add=add)


@case
def default_backends(torch):
    for backend in ("eager", "zzz", None):
        torch.compiler.set_default_backend(backend)
        yield torch.compiler.get_default_backend()


class Example:
    """A module made of the given torch."""

    def __new__(cls, torch):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Linear(2, 2)
                self.register_buffer("seen", torch.zeros(1))
                self.n = 3

            def forward(self, x):
                return self.inner(x)

            def twice(self):
                return self.n * 2

        return Net()


@case
def compiled_modules(torch):
    net = Example(torch)
    made = torch.compile(net, backend="eager")
    yield type(made).__name__, isinstance(made, type(net)), made, made._orig_mod is net
    yield list(made.state_dict()), list(dict(made.named_parameters()))
    yield list(dict(made.named_modules())), [type(c).__name__ for c in made.children()]
    yield made.inner is net.inner, made.n, made.twice()
    made.n = 5
    yield net.n, made.twice()
    yield made.eval() is made, made.training, net.training, net.inner.training
    made.train()
    yield net.training
    made.training = False
    yield net.training
    yield made.load_state_dict(made.state_dict())
    yield attempt(made.load_state_dict, net.state_dict())
    yield attempt(lambda: made.absent)
    calls = []
    net.register_forward_hook(lambda *args: calls.append("hook"))
    yield torch.equal(made(torch.ones(1, 2)), net(torch.ones(1, 2))), calls
    made(torch.ones(1, 2)).sum().backward()
    yield net.inner.weight.grad
    yield made.to(torch.float64).inner.weight.dtype, net.inner.weight.dtype
    yield len(torch.compile(torch.nn.Sequential(net, net), backend="eager"))
    yield attempt(len, made)
    del made.n
    yield hasattr(net, "n")


@case
def the_mode_that_indexes_by_tensors(torch):
    name = f"{torch.__name__}._dynamo._trace_wrapped_higher_order_op"
    mode = importlib.import_module(name).TransformGetItemToIndex
    x, y = torch.arange(4.0), torch.arange(6.0).view(2, 3)

    def pairs(i, j):
        return x[j] + y[i, j]

    over = torch.vmap(torch.vmap(pairs, (None, 0)), (0, None))
    two = torch.tensor(2)
    with mode():
        yield over(torch.arange(2), torch.arange(3))
        yield x[two], x[two]._base, x[1]._base, y[1, two], y[two - 1]
        yield y[:, 1], y[[0, 1], two], attempt(lambda: x[two + 2])
    yield x[two]._base is x


@case
def decorators(torch):
    @torch.compile(backend="eager", dynamic=True)
    def double(x):
        return x * 2

    @torch.compiler.disable
    def half(x):
        return x / 2

    @torch.no_grad()
    @torch.compile(backend="eager")
    def mean(x):
        return x.mean()

    x = torch.ones(2, requires_grad=True)
    return double(x), half(x), mean(x)


@case
def copies(torch):
    net = torch.nn.Linear(2, 1)
    made = torch.compile(net, backend="eager")
    again = copy.deepcopy(made)
    yield type(again).__name__, again._orig_mod is net, list(again.state_dict())
    yield torch.equal(again.weight, net.weight)


def test_modules_can_be_pickled():
    made = torchshim.compile(torchshim.nn.Linear(2, 1))
    again = pickle.loads(pickle.dumps(made))
    assert torchshim.equal(again.weight, made.weight)


def test_backends_of_ones_own_are_refused():
    with pytest.raises(NotImplementedError, match="no graph"):
        torchshim.compile(add, backend=lambda graph, inputs: graph)


def test_stances():
    with torchshim.compiler.set_stance("force_eager"):
        assert not torchshim.compiler.is_compiling()
    with pytest.raises(NotImplementedError, match="always compiled"):
        torchshim.compiler.set_stance("fail_on_recompile")


@case(raises=AssertionError)
def settings_changed_for_a_block(torch):
    config = torch._dynamo.config

    def changed(*args, **named):
        with config.patch(*args, **named):
            return config.verbose, config.disable

    yield attempt(changed), attempt(changed, "verbose", True)
    yield attempt(changed, {"verbose": True}), attempt(changed, verbose=True)
    yield attempt(changed, "verbose"), attempt(changed, None, True), attempt(changed, 3)
    yield attempt(changed, {"verbose": True}, 3)
    yield attempt(changed, {"verbose": True}, disable=True)
    yield config.verbose, config.disable, attempt(changed, "zzz", 1)


def test_settings_of_the_tracer():
    config = torchshim._dynamo.config
    with config.patch(cache_size_limit=64):
        assert config.cache_size_limit == 64
    assert config.cache_size_limit == 8
    config = torchshim._inductor.config
    with config.patch({"triton.cudagraphs": True, "max_autotune": True}):
        assert config.triton.cudagraphs and config.max_autotune
    assert not config.triton.cudagraphs and not config.max_autotune
    with pytest.raises(AttributeError, match="does not exist"):
        config.zzz = 1


def test_modules_compile_themselves():
    net = torchshim.nn.Linear(1, 1)
    assert net.compile(backend="eager") is None
    assert list(net.state_dict()) == ["weight", "bias"]
    assert net(torchshim.ones(1)).shape == (1,)
    with pytest.raises(RuntimeError, match="Unrecognized mode=x"):
        net.compile(mode="x")
