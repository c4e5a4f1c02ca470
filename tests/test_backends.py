"""`torch.backends`: what is there, and settings that are kept."""

from __future__ import annotations

import pytest

import torchshim
from tests.oracle import attempt, case, evaluate
from torchshim.backends import cpu


@case(raises=(AttributeError, AssertionError)).lines(
    """
    torch.backends.cudnn.version()
    torch.backends.cudnn.is_available()
    torch.backends.cudnn.is_acceptable(torch.ones(1))
    torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark
    torch.backends.cudnn.deterministic, torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.benchmark_limit, torch.backends.cudnn.depthwise_kernel
    torch.backends.cudnn.conv.fp32_precision, torch.backends.cudnn.rnn.fp32_precision
    torch.backends.cudnn.fp32_precision, torch.backends.fp32_precision
    torch.backends.cuda.is_built()
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction
    torch.backends.cuda.matmul.allow_fp16_accumulation
    torch.backends.cuda.matmul.foo
    torch.backends.cuda.preferred_linalg_library().name
    torch.backends.cuda.preferred_blas_library().name
    torch.backends.cuda.preferred_linalg_library("x")
    torch.backends.cuda.preferred_blas_library("x")
    torch.backends.cuda.preferred_linalg_library(3)
    torch.backends.cuda.preferred_linalg_library("magma")
    torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.math_sdp_enabled()
    torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
    torch.backends.cuda.is_flash_attention_available()
    torch.backends.cuda.cufft_plan_cache.size
    torch.backends.cuda.cufft_plan_cache[0]
    torch.backends.mps.is_available(), torch.backends.mps.is_built()
    torch.backends.mps.is_macos13_or_newer()
    torch.backends.mkl.VERBOSE_ON
    torch.backends.opt_einsum.is_available(), torch.backends.opt_einsum.strategy
    torch.backends.opt_einsum.set_flags(_strategy="x")
    torch.backends.cusparselt.is_available(), torch.backends.cusparselt.version()
    torch.backends.kleidiai.is_available(), torch.backends.mha.get_fastpath_enabled()
    setattr(torch.backends.cuda.matmul, "allow_tf32", "x")
    setattr(torch.backends.cuda.matmul, "allow_bf16_reduced_precision_reduction", "x")
    setattr(torch.backends.cuda.matmul, "zzz", 1)
    setattr(torch.backends.cuda.matmul, "fp32_precision", "bf16")
    setattr(torch.backends.cudnn, "benchmark", "x")
    setattr(torch.backends.cudnn, "deterministic", 1)
    setattr(torch.backends.cudnn, "enabled", None)
    setattr(torch.backends.cudnn, "allow_tf32", "x")
    setattr(torch.backends.cudnn.conv, "fp32_precision", "bad")
    setattr(torch.backends.cudnn.conv, "fp32_precision", "bf16")
    setattr(torch.backends, "fp32_precision", "bad")
    setattr(torch.backends.mkldnn, "enabled", 3)
    setattr(torch.backends.mkldnn, "allow_tf32", None)
    """
)
def questions(torch, line):
    return evaluate(torch, line)


@pytest.mark.live
def test_what_this_processor_can_do(real_torch):
    ours, theirs = torchshim.backends.cpu, real_torch.backends.cpu
    assert ours.get_cpu_capability() == theirs.get_cpu_capability()


_AVX512 = {"avx512f", "avx512vl", "avx512bw", "avx512dq"}


@pytest.mark.parametrize(
    ("features", "asked", "expected"),
    [
        ({"avx2", "fma"} | _AVX512, "", "AVX512"),
        ({"avx2", "fma"} | _AVX512, "avx2", "AVX2"),
        ({"avx2", "fma", "avx512f"}, "", "AVX2"),
        ({"avx2"}, "x", "DEFAULT"),
    ],
)
def test_what_a_processor_can_do(monkeypatch, features, asked, expected):
    monkeypatch.setattr(cpu, "features", lambda: features)
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", asked)
    assert torchshim.backends.cpu.get_cpu_capability() == expected


@case
def settings(torch):
    cudnn = torch.backends.cudnn
    for name in ("benchmark", "deterministic", "enabled"):
        before = getattr(cudnn, name)
        setattr(cudnn, name, not before)
        yield name, getattr(cudnn, name)
        setattr(cudnn, name, before)
    with cudnn.flags(enabled=True, benchmark=True):
        yield cudnn.benchmark, cudnn.enabled, cudnn.allow_tf32
    yield cudnn.benchmark, cudnn.enabled, cudnn.allow_tf32
    with torch.backends.mkldnn.flags(enabled=False):
        yield torch.backends.mkldnn.enabled
    yield torch.backends.mkldnn.enabled
    with torch.backends.opt_einsum.flags(enabled=True, strategy="greedy"):
        yield torch.backends.opt_einsum.strategy
    yield torch.backends.opt_einsum.strategy


@case
def attention_kernels(torch):
    cuda = torch.backends.cuda
    with cuda.sdp_kernel(enable_flash=False):
        yield cuda.flash_sdp_enabled(), cuda.math_sdp_enabled()
        yield cuda.cudnn_sdp_enabled(), cuda.mem_efficient_sdp_enabled()
    yield cuda.flash_sdp_enabled()


@case
def precisions(torch):
    backends = torch.backends
    backends.fp32_precision = "tf32"
    yield backends.cuda.matmul.fp32_precision, backends.mkldnn.conv.fp32_precision
    yield attempt(lambda: backends.cuda.matmul.allow_tf32)
    yield attempt(torch.get_float32_matmul_precision)
    backends.fp32_precision = "none"
    backends.cudnn.conv.fp32_precision = "ieee"
    yield backends.cudnn.conv.fp32_precision, backends.cudnn.rnn.fp32_precision
    yield attempt(lambda: backends.cudnn.allow_tf32)
    backends.cudnn.allow_tf32 = False
    yield backends.cudnn.conv.fp32_precision, backends.cudnn.allow_tf32
    backends.cudnn.allow_tf32 = True
    yield backends.cudnn.conv.fp32_precision


def test_what_xla_takes_the_place_of_is_not_there():
    backends = torchshim.backends
    for module in (backends.mkl, backends.mkldnn, backends.openmp, backends.nnpack):
        assert not module.is_available()


@case
def engines_of_quantized_operators(torch):
    quantized = torch.backends.quantized
    yield quantized.engine, sorted(quantized.supported_engines)
    for name in ("fbgemm", "qnnpack", "onednn", "x86", "a", 1):
        yield attempt(setattr, quantized, "engine", name), quantized.engine
    yield attempt(setattr, quantized, "supported_engines", ())


def test_jax_is_asked_for_the_precision():
    precision = torchshim._core.precision.precision
    assert (precision.matmul, precision.convolution) == ("highest", "high")
    for chosen, asked in (("high", "high"), ("medium", "default")):
        torchshim.set_float32_matmul_precision(chosen)
        assert precision.matmul == asked
    torchshim.set_float32_matmul_precision("highest")
    torchshim.backends.cuda.matmul.fp32_precision = "none"
    torchshim.backends.mkldnn.matmul.fp32_precision = "none"
    torchshim.backends.cudnn.allow_tf32 = False
    assert precision.convolution == "highest"
    torchshim.backends.cudnn.allow_tf32 = True
    assert precision.key == 0


@case
def names_of_preferred_libraries(torch):
    found = torch.backends.cuda.preferred_linalg_library("default")
    yield str(found), repr(found), f"{found.name}"


@case
def frozen_flags(torch):
    backends = torch.backends
    yield backends.flags_frozen()
    # (As in PyTorch nothing undoes it.)
    allowing = getattr(backends, "__allow_nonbracketed_mutation")
    modules = ("cudnn", "mkldnn", "opt_einsum")
    try:
        backends.disable_global_flags()
        yield backends.flags_frozen()
        for name in modules:
            module = getattr(backends, name)
            yield name, attempt(setattr, module, "enabled", module.enabled)
        yield attempt(setattr, backends, "fp32_precision", "none")
        yield attempt(setattr, backends.cudnn, "benchmark", True)
        with backends.cudnn.flags(enabled=False, benchmark=True):
            yield backends.cudnn.enabled, backends.cudnn.benchmark
        yield backends.cudnn.enabled, backends.cudnn.benchmark
        with allowing():
            yield backends.flags_frozen()
            backends.cudnn.benchmark = True
            backends.cudnn.benchmark = False
        yield backends.flags_frozen()
    finally:
        allow_again(backends)
    backends.cudnn.enabled = True
    yield backends.flags_frozen()


def allow_again(backends):
    """Undoes `disable_global_flags`."""
    if backends is torchshim.backends:
        backends._module._frozen[0] = False
    else:
        vars(backends.m)["__allow_nonbracketed_mutation_flag"] = True


@case
def switches_by_function(torch):
    for name in ("mkldnn_enabled", "mkldnn_deterministic", "cudnn_enabled"):
        get = getattr(torch._C, f"_get_{name}")
        put = getattr(torch._C, f"_set_{name}")
        before = get()
        put(not before)
        kind, own = name.split("_")
        yield name, before, get(), getattr(getattr(torch.backends, kind), own)
        yield attempt(put, 1)
        put(before)
    put = torch._C._set_cudnn_benchmark
    yield attempt(put, "a"), torch._C._get_cudnn_benchmark()
