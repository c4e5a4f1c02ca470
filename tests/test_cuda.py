"""`torch.cuda` on a machine without a GPU: the answers of a PyTorch without CUDA."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import torchshim as torch
from tests.oracle import attempt, case, evaluate

no_gpu = pytest.mark.skipif(
    any(d.platform != "cpu" for d in jax.devices()), reason="JAX sees an accelerator"
)


@no_gpu
def test_answers_without_a_gpu():
    assert not torch.cuda.is_available()
    assert torch.cuda.device_count() == 0
    assert torch.cuda.memory_allocated() == 0
    torch.cuda.manual_seed_all(3)
    torch.cuda.empty_cache()
    for question in (
        torch.cuda.current_device,
        torch.cuda.get_device_name,
        torch.cuda.synchronize,
    ):
        with pytest.raises(AssertionError, match="Torch not compiled with CUDA"):
            question()


@no_gpu
def test_only_a_cuda_device_can_be_set():
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        torch.cuda.set_device("cpu")
    with pytest.raises(ValueError, match="with a specified index or an integer"):
        torch.cuda.set_device("cuda")
    torch.cuda.set_device(-1)


@case(
    raises=(AssertionError, AttributeError, ModuleNotFoundError), warnings=False
).lines(
    """
    torch.cuda.get_device_capability()
    torch.cuda.get_device_properties(0)
    torch.cuda.get_arch_list(), torch.cuda.get_gencode_flags()
    torch.cuda.is_bf16_supported(), torch.cuda.is_tf32_supported()
    torch.cuda.max_memory_allocated(), torch.cuda.memory_reserved()
    torch.cuda.max_memory_reserved(), torch.cuda.memory_cached()
    torch.cuda.memory_stats(), torch.cuda.memory_stats_as_nested_dict()
    torch.cuda.memory_summary()
    torch.cuda.mem_get_info()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_max_memory_allocated()
    torch.cuda.memory_snapshot()
    torch.cuda.list_gpu_processes()
    torch.cuda.current_stream()
    torch.cuda.Stream()
    torch.cuda.Event(enable_timing=True)
    torch.cuda.init()
    torch.cuda.is_initialized(), torch.cuda.default_generators
    torch.cuda.initial_seed()
    torch.cuda.seed(), torch.cuda.seed_all(), torch.cuda.manual_seed(1)
    torch.cuda.manual_seed("a")
    torch.cuda.get_rng_state()
    torch.cuda.get_rng_state_all()
    torch.cuda.set_rng_state(torch.zeros(3, dtype=torch.uint8))
    torch.cuda.utilization()
    torch.cuda.can_device_access_peer(0, 1)
    torch.cuda.get_sync_debug_mode()
    torch.cuda.is_current_stream_capturing()
    torch.cuda.CUDAGraph()
    torch.cuda.set_device(0)
    torch.cuda.device("cpu")
    torch.cuda.device(torch.device("cuda:1")).idx
    torch.cuda.device_of(torch.ones(1)).idx
    torch.cuda.nvtx.range_push("a")
    torch.cuda.FloatTensor(3)
    torch.cuda.FloatTensor.dtype, isinstance(torch.ones(1), torch.cuda.FloatTensor)
    torch.cuda.get_allocator_backend()
    torch.cuda.amp.common.amp_definitely_not_available()
    torch.cpu.is_available(), torch.cpu.device_count(), torch.cpu.current_device()
    torch.cpu.synchronize(), torch.cpu.Event().query(), torch.cpu.is_initialized()
    torch.accelerator.is_available(), torch.accelerator.device_count()
    torch.accelerator.current_accelerator()
    torch.accelerator.current_device_index()
    torch.accelerator.synchronize()
    torch.mps.is_available(), torch.mps.device_count(), torch.mps.manual_seed(1)
    torch.mps.empty_cache()
    torch.mps.set_per_process_memory_fraction(3)
    torch.xpu.is_available(), torch.xpu.device_count(), torch.xpu.memory_allocated()
    torch.xpu.current_device()
    torch.xpu.Stream()
    torch.mtia.is_available(), torch.mtia.device_count(), torch.mtia.is_bf16_supported()
    torch.mtia.current_device()
    torch.mtia.init()
    torch.Stream(), torch.Stream().query(), torch.Stream() == torch.Stream()
    torch.Stream(device="cuda")
    torch.Stream(device="hpu")
    torch.Stream(3.5)
    torch.Generator("cuda")
    torch.Generator("mps:1")
    torch.Generator("xpu")
    torch.Generator("xla")
    torch.Generator("mtia")
    torch.Generator("hpu")
    torch.Generator("vulkan")
    torch.Generator("privateuseone")
    torch.sparse_coo_tensor([[0]], [1.0], device="cuda")
    torch.sparse_coo_tensor(torch.ones(1, 1).long(), torch.ones(1), (2,), device="xpu")
    torch.sparse_coo_tensor((2, 3), device="cuda:1")
    torch.sparse_csr_tensor([0, 1], [0], [1.0], device="hpu")
    torch.zeros(2, layout=torch.sparse_coo, device="cuda")
    torch.eye(2).to_sparse().to("cuda")
    torch.nested.nested_tensor([torch.ones(2)], device="cuda")
    torch.nested.as_nested_tensor([torch.ones(2)], device="cuda")
    torch.nested.as_nested_tensor(torch.ones(2, 2), device="cuda")
    torch.Stream().wait_stream(torch.Stream())
    torch.Event().record()
    torch.Event(enable_timing=True), torch.Event().query()
    torch.Event().elapsed_time(torch.Event())
    """
)
def questions(torch, line):
    return evaluate(torch, line)


@case(warnings=False)
def blocks_without_a_gpu(torch):
    def within(block):
        with block:
            return 1

    yield attempt(within, torch.cuda.device(0))
    yield attempt(within, torch.cuda.device(-1))
    yield attempt(within, torch.cuda.device_of(torch.ones(1)))
    yield attempt(within, torch.cuda.stream(None))
    yield attempt(lambda: within(torch.cuda.nvtx.range("a")))
    yield attempt(within, torch.Stream())
    yield attempt(within, torch.cpu.stream(torch.cpu.current_stream()))
    yield attempt(within, torch.accelerator.device_index(0))
    yield attempt(within, torch.accelerator.device_index(None))


@case
def comparisons_on_a_missing_device(torch):
    torch.set_default_device("cuda")
    try:
        yield attempt(torch.testing.assert_close, np.ones(2), np.ones(2))
    finally:
        torch.set_default_device(None)


def test_the_usual_first_line():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    assert torch.ones(2, device=device).to(device).sum().item() == 2.0
