"""`torch.distributed` in a group of one process, compared with PyTorch."""

from __future__ import annotations

import contextlib
import importlib
import os
import tempfile

import pytest

from tests.oracle import attempt, case


@contextlib.contextmanager
def alone(torch):
    """The default group, of this process."""
    dist = torch.distributed
    with tempfile.TemporaryDirectory() as folder:
        where = f"file://{folder}/meet"
        dist.init_process_group("gloo", where, rank=0, world_size=1)
        try:
            yield dist
        finally:
            dist.destroy_process_group()


@case
def without_a_group(torch):
    dist, parallel = torch.distributed, torch.nn.parallel
    x = torch.ones(2)
    yield dist.is_available(), dist.is_initialized(), dist.is_mpi_available()
    for each in (dist.get_rank, dist.get_world_size, dist.get_backend, dist.barrier):
        yield attempt(each)
    yield attempt(dist.all_reduce, x), attempt(dist.destroy_process_group)
    yield attempt(dist.new_group, [0])
    yield attempt(parallel.DistributedDataParallel, torch.nn.Linear(1, 1))
    names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    before = {name: os.environ.pop(name, None) for name in names}
    yield attempt(dist.init_process_group, "gloo")
    yield attempt(dist.init_process_group, "gloo", "tcp://127.0.0.1:1")
    yield attempt(dist.init_process_group, "gloo", "no://", rank=0, world_size=1)
    os.environ.update({k: v for k, v in before.items() if v is not None})


def sharded(torch, *args, **options):
    optim = importlib.import_module(f"{torch.__name__}.distributed.optim")
    return optim.ZeroRedundancyOptimizer(*args, **options)


@case(warnings=False)
def optimizers_of_one_member(torch):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
    adam = torch.optim.AdamW
    yield attempt(sharded, torch, net.parameters(), adam, lr=0.1)
    with alone(torch):
        for wrong in (3, [], [3], net[0].weight):
            yield attempt(sharded, torch, wrong, adam, lr=0.1)
        first = {"params": [net[0].weight, net[1].weight], "weight_decay": 0.1}
        optimizer = sharded(torch, **first, optimizer_class=adam, lr=0.1)
        optimizer.add_param_group({"params": [net[0].bias], "weight_decay": 0.0})
        decay = torch.optim.lr_scheduler.StepLR(optimizer, 2)
        yield repr(optimizer), repr(optimizer.optim), attempt(optimizer.state_dict)
        for _ in range(3):
            optimizer.zero_grad()
            net(torch.ones(4, 3)).pow(2).sum().backward()
            yield optimizer.step(lambda: 7.0), decay.step()
        optimizer.consolidate_state_dict()
        state = optimizer.state_dict()
        yield state, list(net.parameters())
        other = sharded(torch, net.parameters(), adam, lr=0.1)
        yield attempt(other.load_state_dict, state)
        optimizer.load_state_dict(state)
        yield optimizer.optim.param_groups[0]["lr"], len(optimizer.state)
        yield optimizer.rank, optimizer.world_size


@case
def operations(torch):
    ops = torch.distributed.ReduceOp
    kinds = ops.RedOpType
    yield repr([ops.PREMUL_SUM, kinds.MIN]), int(ops.MAX), kinds.__name__
    yield [isinstance(each, ops) for each in (ops.SUM, ops(ops.SUM), 0)]
    yield [isinstance(each, kinds) for each in (ops.SUM, ops(ops.SUM), 0)]
    yield ops(ops.MIN) == ops.MIN, ops(ops.MIN).op, ops.MIN == 3, ops.MIN == ops.MAX
    backend = torch.distributed.Backend
    yield [backend.default_device_backend_map[kind] for kind in ("cpu", "cuda", "mps")]
    yield backend.backend_list[:6], backend.backend_capability["gloo"]
    yield hash(ops(ops.MIN)), hash(ops.MIN), kinds(2), type(attempt(ops, 3))


@case(warnings=False)
def collectives(torch):
    with alone(torch) as dist:
        ops = dist.ReduceOp
        yield dist.is_initialized(), dist.get_rank(), dist.get_world_size()
        yield str(dist.get_backend()), repr([ops.SUM, ops.MAX]), str(ops.AVG)
        yield attempt(dist.init_process_group, "gloo")
        x, out = torch.arange(3.0), torch.zeros(3)
        yield dist.all_reduce(x), dist.all_reduce(x, op=ops.MAX), x
        yield dist.all_reduce(x, async_op=True).wait(), dist.barrier()
        yield dist.broadcast(x, 0), attempt(dist.broadcast, x, src=1)
        yield dist.reduce(x, dst=0), x
        yield dist.all_gather([out], x), out.clone()
        yield dist.all_gather_into_tensor(out.zero_(), x), out.clone()
        yield dist.gather(x, [out.zero_()], dst=0), out.clone()
        yield dist.scatter(out.zero_(), [x], src=0), out.clone()
        yield dist.reduce_scatter(out.zero_(), [x]), out.clone()
        yield dist.reduce_scatter_tensor(out.zero_(), x), out.clone()
        yield dist.all_to_all_single(out.zero_(), x), out.clone()
        yield attempt(dist.all_gather, [out, out], x), attempt(dist.all_gather, x, x)
        yield attempt(dist.all_reduce, [1])
        for op in (ops.BAND, ops.BXOR, ops.AVG, ops(ops.SUM), 0):
            for function in (dist.all_reduce, dist.reduce_scatter_single):
                arguments = (x,) if function is dist.all_reduce else (out, x)
                raised = attempt(function, *arguments, op)
                yield type(raised), "non-integral" in str(raised)
            yield dist.reduce(x.long(), 0, ops.BOR)
        objects = [None]
        yield dist.all_gather_object(objects, {"a": 1}), list(objects)
        yield dist.broadcast_object_list(objects, src=0), list(objects)
        yield dist.gather_object(3, objects), list(objects)
        yield dist.scatter_object_list(objects, [5], src=0), list(objects)
        group = dist.new_group([0])
        yield dist.get_rank(group), dist.get_process_group_ranks(group)
        yield dist.get_group_rank(group, 0), dist.all_reduce(x, group=group)
    yield dist.is_initialized()


@case
def distributed_data_parallel(torch):
    kind = torch.nn.parallel.DistributedDataParallel
    with alone(torch):
        module = kind(torch.nn.Linear(2, 1))
        yield repr(module), list(module.state_dict()), module.training
        with module.no_sync():
            module(torch.ones(1, 2)).sum().backward()
        module(torch.ones(1, 2)).sum().backward()
        yield module.module.weight.grad, [n for n, _ in module.named_parameters()]
        with module.join():
            yield module(torch.zeros(1, 2)).shape
        yield attempt(kind, torch.nn.ReLU())
        yield attempt(kind, torch.nn.Linear(2, 1), device_ids=[0])
        sampler = torch.utils.data.distributed.DistributedSampler(range(5))
        yield sampler.num_replicas, sampler.rank, len(sampler)


def test_more_processes_are_refused():
    import torchshim as torch

    dist = torch.distributed
    with pytest.raises(NotImplementedError, match="a group of 2 processes"):
        dist.init_process_group("gloo", "tcp://localhost:1", rank=0, world_size=2)
    assert not dist.is_initialized()
    with alone(torch), pytest.raises(NotImplementedError, match="no other process"):
        dist.send(torch.ones(1), 1)
