"""`torch.distributed` in a group of one process, compared with PyTorch."""

from __future__ import annotations

import contextlib
import datetime
import importlib
import os
import re
import socket
import tempfile
import threading

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


@case
def subgroups(torch):
    yield torch.distributed.default_pg_timeout
    with alone(torch) as dist:
        for size in (1, 2, 0, None):
            found = attempt(dist.new_subgroups, size)
            yield size, found if isinstance(found, Exception) else len(found[1])
        own, made = dist.new_subgroups_by_enumeration([[0]])
        yield made == [own], dist.get_rank(own), dist.get_world_size(own)
        for ranks in ([[0, 1]], [[1]], [[-1]], [[0, 0]], [[0], [0]], [], None):
            yield attempt(dist.new_subgroups_by_enumeration, ranks)


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
        yield module.require_forward_param_sync, module.static_graph
        told = module._get_ddp_logging_data()
        names = "backend_name module_name broadcast_buffers num_parameter_tensors"
        yield [told[name] for name in names.split()], told["world_size"], told["rank"]
        yield told["find_unused_parameters"], told["total_parameter_size_bytes"]
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
        # PyTorch's group joins a thread that may wait for the interpreter.
        del module


@case
def names_of_their_first_place(torch):
    c10d = torch.distributed.distributed_c10d
    dist = torch.distributed
    yield [getattr(c10d, n) is getattr(dist, n) for n in ("all_reduce", "GroupMember")]
    yield attempt(c10d._get_default_group), c10d._rank_not_in_group(None)
    data, size = c10d._object_to_tensor({"a": [1]}, torch.device("cpu"), None)
    yield data.dtype, size.item() == len(data)
    yield c10d._tensor_to_object(data, size, None)
    with alone(torch):
        yield c10d._get_default_group() is dist.group.WORLD
        c10d._get_default_store().set("a", "b")
        yield c10d._get_default_store().get("a")


@case
def batches_of_a_group(torch):
    layer = torch.nn.SyncBatchNorm(2)
    with alone(torch):
        yield attempt(layer, torch.ones(3, 2))
        yield layer.eval()(torch.ones(3, 2))
    yield layer.train()(torch.ones(3, 2))


def submodule(torch, name):
    return importlib.import_module(f"{torch.__name__}.distributed.{name}")


@case
def joining(torch):
    join = submodule(torch, "algorithms.join")
    seen = []

    class Hook(join.JoinHook):
        def main_hook(self):
            seen.append("main")

        def post_hook(self, is_last_joiner):
            seen.append(is_last_joiner)

    class Part(join.Joinable):
        def __init__(self, group):
            super().__init__()
            self.group = group

        def join_hook(self, **kwargs):
            seen.append(kwargs)
            return Hook()

        join_device = torch.device("cpu")
        join_process_group = property(lambda self: self.group)

    yield attempt(join.Join, []), attempt(join.Joinable)
    with alone(torch) as dist:
        first, second = Part(dist.group.WORLD), Part(dist.group.WORLD)
        yield tuple(first._join_config), join.Join.notify_join_context(first)
        with join.Join([first, second], throw_on_early_termination=True, a=1) as found:
            yield found, tuple(first._join_config), tuple(second._join_config)
            yield join.Join.notify_join_context(first).wait()
            yield join.Join.notify_join_context(second)
        with join.Join([first], enable=False):
            pass
        yield seen
        try:
            with join.Join([first]):
                raise KeyError("a")
        except KeyError:
            yield len(seen)
        yield attempt(join.Join, [first, Part(dist.new_group([0]))])
        net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
        optimizer = sharded(torch, net.parameters(), torch.optim.SGD, lr=0.1)
        yield [isinstance(each, join.Joinable) for each in (net, optimizer)]
        yield net.join_device, optimizer.join_device
        with join.Join([net, optimizer]):
            net(torch.ones(1, 1)).sum().backward()
            yield optimizer.step()


@case
def collectives_with_gradients(torch):
    together = submodule(torch, "nn.functional")
    x = torch.arange(3.0, requires_grad=True)
    with alone(torch) as dist:
        for each in (together.all_reduce, together.all_gather, together.gather):
            found = each(x)
            yield found
            yield torch.autograd.grad([y.pow(2).sum() for y in [*found]], x)
        for name, args in {
            "broadcast": (x, 0),
            "scatter": ([x],),
            "reduce": (x, 0, dist.ReduceOp.MAX),
            "reduce_scatter": (torch.zeros(3), [x]),
            "all_to_all": ([torch.zeros(3)], [x]),
            "all_to_all_single": (torch.zeros(3), x, [3], [3]),
        }.items():
            yield name, getattr(submodule(torch, "nn"), name)(*args)
        yield attempt(together.broadcast, x, 1)


# PyTorch's results wait for theirs when they are used, and have nodes for that.
@case(warnings=False)
def collectives_that_return(torch):
    functions = submodule(torch, "_functional_collectives")
    x = torch.arange(4.0, requires_grad=True)
    with alone(torch) as dist:
        group = dist.group.WORLD
        for name, args in {
            "all_reduce": ("sum", group),
            "broadcast": (0, group),
            "all_gather_single": (0, group),
            "all_gather_tensor": (0, group),
            "reduce_scatter_single": ("sum", 0, group),
            "all_to_all_single": ([4], [4], group),
            "all_to_all_single_autograd": (None, None, [0]),
        }.items():
            y = functions.wait_tensor(getattr(functions, name)(x, *args))
            yield name, y.detach().clone(), torch.autograd.grad(y.pow(2).sum(), x)
        yield attempt(functions.all_reduce, x, "nothing", group)
        yield attempt(functions.all_reduce, x, "sum", None)
        yield functions.all_reduce_coalesced([x.detach()], "avg", group)[0] + 1


@case
def stores(torch):
    dist = torch.distributed
    short = datetime.timedelta(milliseconds=20)
    with tempfile.TemporaryDirectory() as folder:
        hashed, file = dist.HashStore(), dist.FileStore(f"{folder}/words", 1)
        tcp = dist.TCPStore("127.0.0.1", 0, 1, True)
        within = dist.PrefixStore("part", hashed)
        for store in (hashed, file, tcp, within):
            yield type(store).__name__, isinstance(store, dist.Store), store.timeout
            store.set_timeout(short if store is not tcp else store.timeout)
            store.set("a", "x")
            store.set("b", b"\x00y")
            yield store.timeout, store.get("a"), store.get("b")
            yield store.add("n", 3), store.add("n", -1), store.get("n")
            yield store.check(["a"]), store.check(["a", "c"]), store.num_keys()
            yield store.delete_key("b"), store.num_keys()
            yield store.compare_set("a", "x", "y"), store.compare_set("a", "q", "z")
            yield store.compare_set("c", "", "v"), store.compare_set("d", "k", "v")
            yield store.append("a", "!"), store.get("a"), store.wait(["a", "c"])
            yield store.multi_set(["m", "o"], ["1", "2"]), store.multi_get(["m", "o"])
            yield store.has_extended_api()
            if store is tcp:  # PyTorch's server ends with the first error
                continue
            yield attempt(store.add, "a", 1)
            for call in (lambda s: s.get("e"), lambda s: s.wait(["e"], short)):
                try:
                    call(store)
                except RuntimeError as error:
                    yield type(error).__name__, str(error).partition(",")[0]
        yield hashed.get("part/a"), within.underlying_store.num_keys()
        thread = threading.Timer(0.05, hashed.set, ("late", "1"))
        thread.start()
        hashed.set_timeout(datetime.timedelta(seconds=60))
        yield hashed.get("late"), thread.join()
        yield issubclass(dist.DistStoreError, dist.DistError)
    yield attempt(dist.init_process_group, "gloo", store=hashed)
    yield attempt(dist.init_process_group, "gloo", store=hashed, world_size=1)
    dist.init_process_group("gloo", store=hashed, rank=0, world_size=1)
    yield dist.get_world_size(), dist.destroy_process_group()


@case
def placements(torch):
    tensor = submodule(torch, "tensor")
    strided = submodule(torch, "tensor.placement_types")._StridedShard
    kinds = tensor.Shard, tensor.Replicate, tensor.Partial, strided
    made = [kinds[0](0), kinds[0](-1), kinds[1](), kinds[2](), kinds[2]("avg")]
    made.append(strided(1, split_factor=2))
    for each in made:
        yield repr(each), str(each), [isinstance(each, kind) for kind in kinds]
        yield each.is_shard(), each.is_shard(0), each.is_replicate()
        yield each.is_partial(), [each == other for other in made]
        yield len({each, *made})
    yield made[0].dim, made[4].reduce_op, made[5].split_factor
    yield [kinds[0].local_shard_size_and_offset(10, 4, rank) for rank in range(5)]
    yield isinstance(torch.ones(1), tensor.DTensor)


@case
def settings_of_spread_modules(torch):
    fsdp = submodule(torch, "fsdp")
    for name in ("MixedPrecisionPolicy", "CPUOffloadPolicy", "FullStateDictConfig"):
        yield repr(getattr(fsdp, name)())
    yield list(fsdp.ShardingStrategy), list(fsdp.StateDictType)
    yield isinstance(torch.nn.ReLU(), fsdp.FullyShardedDataParallel)


def test_what_needs_more_processes_is_refused():
    import torchshim as torch

    for module, name in (
        ("tensor", "DTensor"),
        ("tensor", "distribute_tensor"),
        ("device_mesh", "init_device_mesh"),
        ("fsdp", "fully_shard"),
        ("fsdp.fully_sharded_data_parallel", "FullyShardedDataParallel"),
        ("checkpoint", "save"),
    ):
        with pytest.raises(NotImplementedError, match=f"{name} is not supported"):
            getattr(submodule(torch, module), name)(torch.ones(1))
    with pytest.raises(NotImplementedError, match="DTensor is not supported"):
        submodule(torch, "tensor").DTensor.from_local(torch.ones(1))


@case
def stores_of_a_program(torch):
    dist = torch.distributed

    class Own(dist.Store):
        def __init__(self):
            super().__init__()
            self.words = {}

        def set(self, key, value):
            self.words[key] = value

        def get(self, key):
            return self.words[key]

        def add(self, key, amount):
            total = int(self.words.get(key, 0)) + amount
            self.words[key] = str(total).encode()
            return total

        def compare_set(self, key, expected, desired):
            if self.words.get(key) in (None, expected):
                self.words[key] = desired
            return self.words[key]

        def check(self, keys):
            return all(key in self.words for key in keys)

        def wait(self, keys, *timeout):
            print("wait", keys, timeout)

    class Extended(Own):
        def append(self, key, value):
            print("append", key, value)

        def multi_get(self, keys):
            return [b"x" for _ in keys]

        def multi_set(self, keys, values):
            print("multi_set", keys, values)

        def has_extended_api(self):
            return True

    for own in (Own(), Extended()):
        store = dist.PrefixStore("q", dist.PrefixStore("p", own))
        store.set("a", "b")
        yield store.get("a"), store.add("n", 3), store.compare_set("a", "b", "c")
        store.append("z", "1")
        store.append("z", "2")
        store.multi_set(["u", "v"], ["1", b"2"])
        yield store.multi_get(["a", "n"]), store.check(["a"]), store.check(["a", "w"])
        store.wait(["a"])
        store.wait(["a"], datetime.timedelta(seconds=3))
        yield store.has_extended_api(), store._underlying_non_prefix_store is own
        yield own.words


@case
def what_stores_lack(torch):
    class Empty(torch.distributed.Store):
        pass

    for store in (Empty(), torch.distributed.PrefixStore("p", Empty())):
        yield store.has_extended_api()
        yield attempt(store.add, "a", 1), attempt(store.check, ["a"])
        yield attempt(store.wait, ["a"]), attempt(store.delete_key, "a")
        yield attempt(store.num_keys), attempt(store.queue_len, "a")
        yield attempt(store.queue_push, "a", "b"), attempt(store.list_keys)
        for name, *args in (("get", "a"), ("append", "a", "b"), ("multi_get", ["a"])):
            yield str(attempt(getattr(store, name), *args))[-16:]
    yield attempt(torch.distributed.PrefixStore, "p", None)


@case
def servers_and_their_clients(torch):
    dist = torch.distributed
    yield attempt(dist.TCPStore, "localhost", 0, world_size=0)
    for wait, size in ((True, 1), (False, 1), (False, 2), (True, None)):
        server = dist.TCPStore("localhost", 0, size, True, wait_for_workers=wait)
        yield server.num_keys()
        # Clients do not wait for others.
        client = dist.TCPStore("localhost", server.port, 5, wait_for_workers=wait)
        yield server.num_keys(), server.list_keys()
        ends = r"\(fd=\d+, addr=\[.*\]:\d+, remote=\[.*\]:\d+\)"
        for each, served in ((server, r"TCPServer\(port=\d+\)"), (client, "<nullptr>")):
            wanted = (
                rf"TCPStore\(client=TCPClient\(SocketImpl{ends}\), server={served}\)"
            )
            yield re.fullmatch(wanted, repr(each)) is not None
    # A socket that listens not yet.
    bound = socket.socket()
    bound.bind(("localhost", 0))
    port = bound.getsockname()[1]
    options = {
        "is_master": True,
        "master_listen_fd": bound.detach(),
        "use_libuv": False,
    }
    store = dist.TCPStore("localhost", port, 1, **options)
    store.set("a", "b")
    yield store.get("a")
    yield attempt(dist.rendezvous, "file://foo?rank=1&world_size=2", 1, 2)


@case
def levels_and_strides(torch):
    dist, name = torch.distributed, "TORCH_DISTRIBUTED_DEBUG"
    before = dist.get_debug_level()
    try:
        for told in ("InFo", "detail", "off", "loud", "1"):
            os.environ[name] = told
            yield attempt(dist.set_debug_level_from_env), dist.get_debug_level().name
    finally:
        del os.environ[name]
        dist.set_debug_level(before)
    with alone(torch):
        columns = torch.ones(2, 3).t()
        yield attempt(dist.all_to_all_single, torch.ones(3, 2), columns)
        yield dist.all_to_all_single(columns, torch.ones(3, 2))
