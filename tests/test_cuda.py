"""`torch.cuda` on a machine without a GPU: the answers of a PyTorch without CUDA."""

from __future__ import annotations

import jax
import pytest

import torchshim as torch

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


def test_the_usual_first_line():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    assert torch.ones(2, device=device).to(device).sum().item() == 2.0
