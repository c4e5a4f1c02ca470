"""What libraries call of `torch.cuda` besides its documented names."""

from __future__ import annotations

import importlib
import warnings

from tests.oracle import attempt, case


@case
def without_a_gpu(torch):
    cuda = torch.cuda
    called = []
    for function, *args in (
        (cuda._lazy_init,),
        (cuda._lazy_call, lambda: called.append(1)),
        (cuda._is_in_bad_fork,),
        (cuda._is_compiled,),
        (cuda._sleep, 3),
        (cuda._exchange_device, -1),
        (cuda._exchange_device, 0),
        (cuda._maybe_exchange_device, -1),
        (cuda._get_device, "cuda:1"),
        (cuda._get_device, 2),
        (cuda._get_generator, torch.device("cuda:0")),
        (cuda._get_device_index, "cuda", True),
        (cuda._get_device_index, torch.device("cpu")),
        (cuda._get_device_index, None),
        (cuda.memory._record_memory_history,),
        (cuda.memory._snapshot,),
        (cuda.memory._dump_snapshot, "nowhere"),
        (cuda.nccl.version,),
        (cuda.nccl.unique_id,),
    ):
        yield attempt(function, *args)
    yield called, cuda._initialized, cuda._cudart, cuda.cudaStatus.SUCCESS
    with cuda._DeviceGuard(-1) as found:
        yield found


@case
def storages(torch):
    kinds = torch.cuda.FloatStorage, torch.cuda.LongStorage, torch.cuda.BoolStorage
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that they are deprecated, which is told once
        for kind in kinds:
            found.append((kind.__name__, repr(kind), kind._dtype, attempt(kind, 3)))
            found.append(attempt(kind.from_buffer, b"0000", "native"))
        made = torch.zeros(2).storage()
        for kind in (torch.cuda.FloatStorage, torch.FloatStorage):
            found.append(isinstance(made, kind))
    return found


@case
def modules(torch):
    jiterator = importlib.import_module(f"{torch.__name__}.cuda.jiterator")
    yield hasattr(jiterator, "_create_jit_fn")
