"""Modules that can be imported and refuse to be used."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import pytest

import torchshim
from tests.oracle import case

MODULES = {
    "profiler": ("_KinetoProfile", "ExecutionTraceObserver", "_ExperimentalConfig"),
    "package": ("PackageExporter", "PackageImporter", "Importer"),
    "ao.quantization": ("prepare_jit", "quantize_dynamic_jit", "script_qconfig"),
    "quantization": ("convert_jit",),
    "quantization.quantize_fx": ("prepare_fx", "convert_fx"),
    "ao.quantization.quantize_fx": ("prepare_fx", "prepare_qat_fx", "fuse_fx"),
    "distributed.autograd": ("context", "get_gradients"),
    "export": ("ExportedProgram", "ShapesCollection", "default_decompositions"),
    "_C": ("Graph", "Value", "TensorType", "PyTorchFileReader", "ScriptModule"),
    "distributed.algorithms.ddp_comm_hooks": ("register_ddp_comm_hook",),
    "distributed.algorithms.ddp_comm_hooks.powerSGD_hook": ("PowerSGDState",),
    "distributed.algorithms.ddp_comm_hooks.post_localSGD_hook": ("PostLocalSGDState",),
    "distributed.algorithms.model_averaging.averagers": ("PeriodicModelAverager",),
    "distributed.rpc": ("init_rpc", "rpc_sync", "shutdown"),
    "distributed._tensor.experimental": ("implicit_replication",),
    "distributed.fsdp": ("share_comm_ctx", "UnshardHandle", "DataParallelMeshDims"),
    "functorch.compile": ("aot_function", "memory_efficient_fusion", "nop"),
    "nn.parallel.comm": ("broadcast", "reduce_add"),
    "cuda.comm": ("gather", "scatter"),
    "utils.backend_registration": ("rename_privateuse1_backend",),
    "utils.bundled_inputs": ("bundle_inputs", "bundle_randn"),
    "utils.cpp_extension": ("load", "CUDAExtension", "include_paths", "_jit_compile"),
    "utils.hipify.hipify_python": ("hipify", "get_hip_file_path"),
    "utils.mobile_optimizer": ("optimize_for_mobile",),
    "utils.model_dump": ("get_model_info",),
    "utils.throughput_benchmark": ("ThroughputBenchmark",),
    "utils._triton": ("triton_backend",),
    "functorch.dim": ("dims", "Dim", "dimlists"),
}


@case
def names(torch):
    module = importlib.import_module(f"{torch.__name__}.ao.quantization")
    yield sorted(module.__all__)
    package = importlib.import_module(f"{torch.__name__}.package")
    for name in ("PackagingError", "EmptyMatchError", "ObjNotFoundError"):
        yield issubclass(getattr(package, name), Exception)
    yield package.is_from_package(torch.nn.Linear)


def refused(make: Any) -> str:
    with pytest.raises(NotImplementedError) as error:
        make(torchshim.nn.ReLU())
    return str(error.value)


@pytest.mark.parametrize("name", MODULES)
def test_use_is_refused(name):
    module = importlib.import_module(f"torchshim.{name}")
    for each in MODULES[name]:
        text = refused(getattr(module, each))
        assert each in text and "is not supported: " in text


def test_they_are_attributes_of_torch():
    # In a process of its own, where nothing else has imported them.
    code = "import torchshim as t; t.package, t.ao.quantization, t.quantization"
    subprocess.run([sys.executable, "-c", code], check=True)
