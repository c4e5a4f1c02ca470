"""Memory: what a training step holds at its peak, and what many shapes leave behind.

On a device that counts (CUDA, TPU) the peak is what its allocator reports. On CPU it
is the growth of the process: the peak of its resident memory during some steps, over
what it held when everything was imported. Only Linux can reset that peak.
"""

import gc
import sys
from functools import partial
from pathlib import Path

from ._case import JAX, TORCHSHIM, Case, Goal, only_torchshim, torch_api
from ._mlp import Shape, jax_step, torch_step

MIB = 2**20
# Large enough that the megabytes of the process around the arrays don't count:
# parameters and Adam's two moments are 289 MiB.
HUGE = Shape((2048, 4096, 4096, 10), 64)
STEPS = 5
RECORDINGS = 20_000


def status(field):
    """A field of this process's memory, in bytes: VmRSS (now) or VmHWM (the peak)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"no {field} in /proc/self/status")


def reset_peak():
    Path("/proc/self/clear_refs").write_text("5")


def device_stats():
    """What the allocator of JAX's device counts; None on CPU, and without JAX."""
    if "jax" not in sys.modules:
        return None
    return sys.modules["jax"].local_devices()[0].memory_stats() or None


def peak_of(make_step):
    """MiB at the peak of a hot step."""
    if "jax" in sys.modules:
        sys.modules["jax"].numpy.zeros(1).block_until_ready()  # the backend is up
    gc.collect()
    before = status("VmRSS")
    step = make_step()
    for _ in range(STEPS):
        step()
    stats = device_stats()
    if stats is not None:
        return stats["peak_bytes_in_use"] / MIB
    gc.collect()
    reset_peak()
    for _ in range(STEPS):
        step()
    return (status("VmHWM") - before) / MIB


def torch_peak(torch):
    if torch.__name__ == TORCHSHIM:
        import jax  # noqa: F401 - for its backend, see peak_of
    return lambda: peak_of(partial(torch_step, torch, HUGE))


def jax_peak():
    import jax  # noqa: F401
    import optax  # noqa: F401

    return lambda: peak_of(partial(jax_step, HUGE))


def live_after(make_step):
    """MiB in JAX's arrays between two steps."""
    import jax

    step = make_step()
    for _ in range(STEPS):
        step()
    gc.collect()
    return sum(array.nbytes for array in jax.live_arrays()) / MIB


def torch_live(torch):
    return lambda: live_after(partial(torch_step, torch, HUGE))


def jax_live():
    return lambda: live_after(partial(jax_step, HUGE))


def many_shapes(torch, recordings):
    """MiB that the second half of many recordings, each of a new shape, adds."""

    def record(i):
        x = torch.ones(1 + i % 200, 1 + i // 200, requires_grad=True)
        (x * 2.0 + 1.0).sum().backward()
        return x.grad.sum().item()

    def sample():
        for i in range(recordings // 2):
            record(i)
        gc.collect()
        before = status("VmRSS")
        for i in range(recordings // 2, recordings):
            record(i)
        gc.collect()
        return (status("VmRSS") - before) / MIB

    return sample


CASES = [
    Case(
        name=f"peak of a step, {HUGE}",
        unit="MiB",
        engines={**torch_api(torch_peak), JAX: jax_peak},
        goals=(Goal(1.1, JAX),),
        fresh=True,
        rounds=3,
    ),
    Case(
        name="arrays alive after it, .grad included",
        unit="MiB",
        engines={**only_torchshim(torch_live), JAX: jax_live},
        fresh=True,
        rounds=1,
    ),
    Case(
        name="growth, second half of 1,000 shapes",
        unit="MiB",
        engines=torch_api(many_shapes, 1_000),
        fresh=True,
        rounds=1,
    ),
    Case(
        name=f"growth, second half of {RECORDINGS:,} shapes",
        unit="MiB",
        engines=torch_api(many_shapes, RECORDINGS),
        goals=(Goal(32),),
        fresh=True,
        rounds=1,
        long=True,
    ),
]
