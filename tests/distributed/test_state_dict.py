"""State dicts by names, policies of wrapping, and what wraps modules: as PyTorch."""

from __future__ import annotations

import copy
import subprocess
import sys
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from tests.oracle import attempt, case


def of(torch, name):
    return import_module(f"{torch.__name__}.{name}")


def net_of(torch):
    torch.manual_seed(0)
    nn = torch.nn
    return nn.Sequential(
        nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Sequential(nn.Linear(3, 1), nn.ReLU())
    )


def step(torch, net, optimizer):
    net.eval()(torch.ones(4, 2) + torch.arange(4.0)[:, None]).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


@case.over("Adam", "SGD", "AdamW")
def state_dicts_by_name(torch, kind):
    states = of(torch, "distributed.checkpoint.state_dict")
    net = net_of(torch)
    options = {"momentum": 0.9} if kind == "SGD" else {}
    make = partial(getattr(torch.optim, kind), lr=0.1, **options)
    optimizer = make(net.parameters())
    before = copy.deepcopy(net.state_dict())
    yield states.get_optimizer_state_dict(net, optimizer)
    same = [torch.equal(v, before[k]) for k, v in net.state_dict().items()]
    yield same, optimizer.param_groups[0]["lr"]
    step(torch, net, optimizer)
    model_state, optim_state = states.get_state_dict(net, optimizer)
    yield model_state, optim_state
    other = net_of(torch)
    second = make(other.parameters())
    yield states.set_state_dict(
        other,
        second,
        model_state_dict=model_state,
        optim_state_dict=optim_state,
    )
    yield other.state_dict(), second.state_dict()
    flat = states.StateDictOptions(flatten_optimizer_state_dict=True)
    found = attempt(states.get_optimizer_state_dict, net, optimizer, options=flat)
    yield found
    if isinstance(found, dict):
        third = make(other.parameters())
        states.set_optimizer_state_dict(other, third, found, options=flat)
        yield third.state_dict()


@case
def options_of_state_dicts(torch):
    states = of(torch, "distributed.checkpoint.state_dict")
    options = states.StateDictOptions
    net = net_of(torch)
    net[0].weight.requires_grad_(False)
    get, put = states.get_model_state_dict, states.set_model_state_dict
    yield repr(options())
    yield list(get(net, options=options(ignore_frozen_params=True)))
    yield list(get(net, options=options(full_state_dict=True, cpu_offload=True)))
    yield list(get(net, submodules={net[2]}))
    yield list(
        get(
            net,
            submodules={net[2]},
            options=options(keep_submodule_prefixes=False),
        )
    )
    yield attempt(get, net, options=options(broadcast_from_rank0=True))
    yield attempt(put, net, {"x": torch.ones(1)})
    yield attempt(put, net, {"x": torch.ones(1)}, options=options(strict=False))
    yield attempt(put, net, {net[2]: net[2].state_dict()}, options=options(strict=0))
    sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.5)
    optim = states.get_optimizer_state_dict(net, sgd)
    yield optim
    yield attempt(states.get_optimizer_state_dict, net, [])
    yield attempt(states.set_optimizer_state_dict, net, sgd, {})
    optim["state"].pop("0.bias")
    yield attempt(states.set_optimizer_state_dict, net, sgd, optim)
    yield attempt(
        states.set_optimizer_state_dict,
        net,
        sgd,
        optim,
        options=options(strict=False),
    )


@case
def state_dicts_of_shared_and_several(torch):
    states = of(torch, "distributed.checkpoint.state_dict")
    net = net_of(torch)
    net.add_module("again", net[0])
    net.tied = torch.nn.Linear(2, 3)
    net.tied.weight = net[0].weight
    first = torch.optim.SGD(net[0].parameters(), lr=0.1, momentum=0.9)
    second = torch.optim.Adam(net[2].parameters(), lr=0.2)
    state = states.get_optimizer_state_dict(net, [first, second])
    yield state, list(states.get_model_state_dict(net))
    states.set_optimizer_state_dict(net, (first, second), state)
    yield first.state_dict(), second.state_dict()
    compiled = torch.compile(net_of(torch), backend="eager")
    adam = torch.optim.Adam(compiled.parameters())
    model_state, optim_state = states.get_state_dict(compiled, adam)
    yield list(model_state), list(optim_state["state"]), list(compiled.state_dict())
    yield states.set_state_dict(
        compiled, adam, model_state_dict=model_state, optim_state_dict=optim_state
    )


@case
def policies(torch):
    fsdp = of(torch, "distributed.fsdp.wrap")
    nn = torch.nn
    net = net_of(torch)
    linear, block = net[0], net[2]
    size = fsdp.size_based_auto_wrap_policy
    for recurse in (True, False):
        yield fsdp.always_wrap_policy(net, recurse, 3)
        for module, numel in ((linear, 5), (nn.ModuleList(), 50), (block, 50)):
            yield size(module, recurse, numel, min_num_params=10)
        leaf = {nn.Linear}
        yield size(linear, recurse, 9, 3, force_leaf_modules=leaf)
        yield size(linear, recurse, 9, 3, exclude_wrap_modules=leaf)
        yield fsdp.transformer_auto_wrap_policy(linear, recurse, 0, {nn.Linear})
        yield fsdp.transformer_auto_wrap_policy(block, recurse, 0, {nn.Linear})
        yield fsdp.lambda_auto_wrap_policy(linear, recurse, 0, lambda m: m is block)
        yield fsdp.ModuleWrapPolicy([nn.Linear])(linear, recurse)
        either = [partial(size, min_num_params=1), fsdp.always_wrap_policy]
        yield fsdp._or_policy(linear, recurse, 0, either)
    chosen = fsdp.ModuleWrapPolicy([nn.Linear])._run_policy(net, {linear}, {"a": 1})
    yield [(repr(m), k) for m, k in chosen.items()]
    custom = fsdp.CustomPolicy(lambda m: {"b": 2} if m is linear else m is block)
    yield [(repr(m), k) for m, k in custom._run_policy(net, set(), {"a": 1}).items()]
    yield attempt(fsdp.CustomPolicy(lambda m: 3)._run_policy, net, set(), {})
    yield sorted(fsdp.__all__)


@case
def wrapped(torch):
    fsdp = of(torch, "distributed.fsdp.wrap")
    nn = torch.nn

    class Around(nn.Module):
        def __init__(self, inner, note=None):
            super().__init__()
            self.inner, self.note = inner, note

        def extra_repr(self):
            return str(self.note)

    yield fsdp.wrap(nn.ReLU())
    with fsdp.enable_wrap(wrapper_cls=Around, note=1):
        yield fsdp.wrap(nn.ReLU()), fsdp.wrap(nn.ReLU(), note=2)
        yield attempt(fsdp.enable_wrap(wrapper_cls=Around).__enter__)
    yield fsdp.wrap(nn.ReLU())
    policy = partial(fsdp.size_based_auto_wrap_policy, min_num_params=4)
    made = fsdp._recursive_wrap(net_of(torch), policy, Around, set(), set(), note=3)
    yield repr(made[0]), made[1]
    yield attempt(fsdp._recursive_wrap, made[0], policy, Around, set(), set())


@case.over("NO_REENTRANT", "REENTRANT")
def computed_again(torch, kind):
    again = of(torch, "distributed.algorithms._checkpoint.checkpoint_wrapper")
    fsdp = of(torch, "distributed.fsdp.wrap")
    kind = again.CheckpointImpl[kind]
    net = net_of(torch)
    plain = copy.deepcopy(net)
    make = partial(again.checkpoint_wrapper, checkpoint_impl=kind)
    again.apply_activation_checkpointing(
        net, make, check_fn=lambda m: isinstance(m, torch.nn.Linear)
    )
    yield repr(net), list(net.state_dict()), [n for n, _ in net.named_parameters()]
    yield net.load_state_dict(plain.state_dict())
    x = torch.arange(8.0).view(4, 2).requires_grad_()
    for each in (net, plain):
        each(x).sum().backward()
        yield [p.grad for p in each.parameters()], x.grad
    again.apply_activation_checkpointing(
        plain, make, auto_wrap_policy=fsdp.CustomPolicy(lambda m: m is plain[2])
    )
    yield repr(plain), plain[2][0].in_features
    wrapper = make(torch.nn.Bilinear(2, 2, 1))
    yield wrapper(x, input2=x).shape
    yield again.offload_wrapper(torch.nn.Linear(2, 1))(x).shape
    yield attempt(again.apply_activation_checkpointing, net, auto_wrap_policy=3)


@case
def helpers(torch):
    utils = of(torch, "distributed.utils")
    flat, names = utils._pack_kwargs(1, 2, a=3, b=4)
    yield flat, names, utils._unpack_kwargs(flat, names)
    yield attempt(utils._unpack_kwargs, (1,), ("a", "b"))
    x = torch.ones(2)
    tree = {"a": [x, (x, 3)], "b": {"c": x}}
    yield utils._apply_to_tensors(lambda t: t + 1, tree)
    yield utils._cast_forward_inputs(torch.float64, x, torch.tensor(1), k=x)
    yield utils._to_kwargs((x,), {"k": x}, torch.device("cpu"), False)
    yield utils._to_kwargs((), {"k": x}, torch.device("cpu"), False)
    yield utils._to_kwargs((x,), None, torch.device("cpu"), False)
    state = {"a.x": 1, "b.x": 2, "a.y": 3}
    utils._replace_by_prefix(state, "a.", "c.a.")
    yield state, attempt(utils._replace_by_prefix, state, "a", "a")
    net = net_of(torch)
    yield len(utils._get_root_modules([net[2], net[2][0], net[0]]))
    yield attempt(utils._p_assert, True, "fine")


SCRIPT = """
import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
print(dist.get_rank(), dist.get_world_size(), os.environ["LOCAL_RANK"], sys.argv[1:])
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize("status", [0, 3])
def test_torchrun_of_one_process(tmp_path: Path, status: int) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    command = [sys.executable, "-m", "torchshim", "-m", "torch.distributed.run"]
    options = ["--nproc_per_node=1", "--master-port", "29511", "--standalone"]
    done = subprocess.run(
        [*command, *options, str(path), str(status), "--flag"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split("\n")[0] == f"0 1 0 ['{status}', '--flag']", done.stderr
    assert done.returncode == (1 if status else 0)  # as of PyTorch's launcher


@pytest.mark.parametrize("use_env", [False, True])
def test_launch_tells_the_rank(tmp_path: Path, use_env: bool) -> None:
    script = tmp_path / "script.py"
    script.write_text("import os, sys; print(sys.argv[1:], os.environ['LOCAL_RANK'])")
    command = [sys.executable, "-m", "torchshim", "-m", "torch.distributed.launch"]
    command += ["--nproc_per_node=1", *(["--use_env"] if use_env else [])]
    command += [str(script), "--lr=1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = ["--lr=1"] if use_env else ["--local-rank=0", "--lr=1"]
    assert (done.returncode, done.stdout) == (0, f"{told} 0\n"), done.stderr
    assert "FutureWarning: The module torch.distributed.launch is depr" in done.stderr


def test_what_torchrun_refuses() -> None:
    run = import_module("torchshim.distributed.run")
    for options in (["--nnodes", "2:4"], ["--tee=3"], ["--log-dir=logs"]):
        with pytest.raises(NotImplementedError, match="is not supported"):
            run.main([*options, "script.py"])
