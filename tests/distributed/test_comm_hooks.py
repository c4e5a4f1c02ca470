"""Communication hooks of `DistributedDataParallel`, and what they are made of."""

from __future__ import annotations

import importlib
import json
import os
import tempfile

import pytest

import torchshim
from tests.distributed import test_distributed
from tests.oracle import attempt, case


def alone(torch):
    """A group of this process."""
    # PyTorch takes the group there is when this is imported for the default one.
    importlib.import_module(f"{torch.__name__}.distributed.nn.functional")
    return test_distributed.alone(torch)


def noting(torch, seen, factor=2):
    def hook(state, bucket):
        flat = bucket.buffer()
        shapes = [tuple(each.shape) for each in bucket.parameters()]
        same = shapes == [tuple(each.shape) for each in bucket.gradients()]
        seen.append((state, bucket.index(), bucket.is_last(), flat.shape, shapes, same))
        future = torch.futures.Future()
        future.set_result(flat * factor)
        return future

    return hook


def parallel(torch, module, **options):
    return torch.nn.parallel.DistributedDataParallel(module, **options)


@case
def what_hooks_see(torch):
    nn, seen = torch.nn, []
    torch.manual_seed(0)
    with alone(torch):
        inner = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
        model, x = parallel(torch, inner), torch.ones(2, 3)
        model.register_comm_hook("state", noting(torch, seen))
        for zero in (True, True, False):
            if zero:
                model.zero_grad()
            model(x).sum().backward()
            yield [p.grad for p in inner.parameters()], seen[:]
        with model.no_sync():
            model(x).sum().backward()
        yield [p.grad for p in inner.parameters()], len(seen)
        model(x).sum().backward()
        yield [p.grad for p in inner.parameters()], len(seen)
        yield attempt(model.register_comm_hook, None, noting(torch, seen))


@case
def several_buckets(torch):
    nn, seen = torch.nn, []
    with alone(torch):
        inner = nn.Sequential(
            nn.Linear(300, 600), nn.Linear(600, 600), nn.Linear(600, 1)
        )
        model = parallel(torch, inner, bucket_cap_mb=1)
        model.register_comm_hook("b", noting(torch, seen, 1))
        for _ in range(2):
            model(torch.ones(1, 300)).sum().backward()
        yield seen


@case
def hooks_that_are_there(torch):
    name = f"{torch.__name__}.distributed.algorithms.ddp_comm_hooks.default_hooks"
    hooks = importlib.import_module(name)
    with alone(torch) as dist:
        for hook in (
            hooks.allreduce_hook,
            hooks.fp16_compress_hook,
            hooks.fp16_compress_wrapper(hooks.allreduce_hook),
        ):
            torch.manual_seed(0)
            model = parallel(torch, torch.nn.Linear(2, 2))
            model.register_comm_hook(dist.group.WORLD, hook)
            model(torch.tensor([[1.2345, 0.1]])).exp().sum().backward()
            yield model.module.weight.grad, hook.__name__
        model = parallel(torch, torch.nn.Linear(2, 2))
        for refused in (hooks.bf16_compress_hook, 3):
            yield attempt(model.register_comm_hook, None, refused)
        half = hooks.bf16_compress_wrapper(hooks.allreduce_hook)
        yield attempt(model.register_comm_hook, None, half)


@case
def hooks_of_users(torch):
    with alone(torch) as dist:

        def added(state, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
            work = dist.all_reduce(bucket.buffer(), async_op=True)
            return work.get_future().then(lambda future: future.value()[0] + 1)

        def put(state, bucket):
            bucket.set_buffer(torch.full_like(bucket.buffer(), 9.0))
            future = torch.futures.Future()
            future.set_result(bucket.buffer())
            return future

        def no_future(state, bucket):
            return bucket.buffer()

        def fails(state, bucket):
            raise ValueError("no")

        def wrong_bucket(state, bucket: int):
            pass

        def wrong_result(state, bucket) -> int:
            return 3

        for hook in (added, put, no_future, fails, wrong_bucket, wrong_result):
            model = parallel(torch, torch.nn.Linear(2, 1))
            # The annotations as a program has them that does not postpone them.
            for name, kind in hook.__annotations__.items():
                scope = {"dist": dist, "torch": torch}
                hook.__annotations__[name] = eval(kind, scope)
            yield attempt(model.register_comm_hook, None, hook)
            yield attempt(model(torch.ones(1, 2)).sum().backward)
            yield model.module.weight.grad


@case
def futures_of_collectives(torch):
    with alone(torch) as dist:
        x, out = torch.arange(3.0), torch.zeros(3)
        for work in (
            dist.all_reduce(x, async_op=True),
            dist.reduce(x, 0, async_op=True),
            dist.broadcast(x, 0, async_op=True),
            dist.all_gather([out], x, async_op=True),
            dist.all_gather_single(out, x, async_op=True),
            dist.scatter(out, [x], async_op=True),
            dist.all_to_all([out], [x], async_op=True),
            dist.all_to_all_single(out, x, async_op=True),
        ):
            found = work.get_future().wait()
            work.wait()  # PyTorch's thread may not have noted yet that it is done
            yield found, work.result()
        yield dist.barrier(async_op=True).get_future().wait()
        yield attempt(dist.reduce_scatter(out, [x], async_op=True).get_future)


@case
def recorded_errors(torch):
    name = f"{torch.__name__}.distributed.elastic.multiprocessing.errors"
    errors = importlib.import_module(name)

    @errors.record
    def main(x):
        if x == "exit":
            raise SystemExit(0)
        return 1 / x

    yield main(2), main("exit"), main.__name__, attempt(main, 0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "error.json")
        os.environ["TORCHELASTIC_ERROR_FILE"] = path
        try:
            yield attempt(main, 0)
        finally:
            del os.environ["TORCHELASTIC_ERROR_FILE"]
        with open(path) as file:
            found = json.load(file)["message"]
        yield found["message"], sorted(found["extraInfo"])
        yield found["extraInfo"]["py_callstack"].startswith("Traceback")


def test_hooks_with_unused_parameters_are_refused():
    with alone(torchshim):
        model = parallel(torchshim, torchshim.nn.Linear(1, 1))
        model.find_unused_parameters = True
        with pytest.raises(NotImplementedError, match="find_unused_parameters"):
            model.register_comm_hook(None, noting(torchshim, []))
