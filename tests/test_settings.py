"""Settings of the library, and small questions about it."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import warnings

import pytest

import torchshim
from tests.oracle import attempt, case, evaluate


@case.lines(
    """
    torch.set_num_threads(0)
    torch.set_num_threads("a")
    torch.set_num_threads(True)
    torch.set_num_threads(1.0)
    torch.set_num_interop_threads(0)
    torch.set_num_threads(2**65)
    torch.set_num_threads(-(2**31) - 1)
    torch.set_num_interop_threads(2**31)
    torch.use_deterministic_algorithms(3)
    torch.use_deterministic_algorithms(True, warn_only=1)
    torch.set_deterministic_debug_mode("x")
    torch.set_deterministic_debug_mode(7)
    torch.set_deterministic_debug_mode(1.5)
    torch.are_deterministic_algorithms_enabled()
    torch.get_deterministic_debug_mode()
    torch.set_float32_matmul_precision("bad")
    torch.set_float32_matmul_precision(3)
    torch.get_float32_matmul_precision()
    torch.set_flush_denormal(1)
    torch.set_flush_denormal(True)
    torch.set_warn_always(1)
    torch.is_warn_always_enabled()
    torch.compiled_with_cxx11_abi()
    torch.is_vulkan_available(), torch.has_lapack, torch.has_spectral
    torch.has_cuda, torch.has_mps, torch.has_cudnn
    torch.version.cuda, torch.version.hip, torch.version.debug, torch.version.xpu
    torch.version.git_version
    torch.typename(torch.ones(1)), torch.typename(3), torch.typename(torch.nn.Linear)
    torch.get_device_module("meta")
    torch.get_device_module(3.5)
    torch.get_device_module("cpu") is torch.cpu, torch.get_device_module() is torch.cpu
    torch.sym_int(3.7), torch.sym_float(3), torch.sym_max(1, 2.5), torch.sym_min(1, 2.5)
    torch.sym_not(True), torch.sym_ite(True, 1, 2), torch.sym_sqrt(4)
    torch.sym_sum([1, 2])
    isinstance(torch.ones(2).shape[0], torch.SymInt)
    torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.get_swap_module_params_on_conversion()
    torch.OutOfMemoryError is torch.cuda.OutOfMemoryError, torch.OutOfMemoryError
    sorted(torch.types.__all__), torch.types.Number
    """
)
def questions(torch, line):
    return evaluate(torch, line)


@case
def threads(torch):
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield torch.get_num_threads()
    torch.set_num_threads(before)


@case
def determinism(torch):
    def state():
        return (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
            torch.get_deterministic_debug_mode(),
        )

    torch.use_deterministic_algorithms(True)
    yield state()
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield state()
    for mode in ("error", "warn", 1, "default"):
        torch.set_deterministic_debug_mode(mode)
        yield state()


@case
def what_is_not_deterministic(torch):
    functional = torch.nn.functional
    at, one = torch.tensor([0]), torch.ones(1)

    def calls():
        x = torch.zeros(3)
        yield repr(attempt(x.put_, at, one)), repr(attempt(torch.put, x, at, one))
        yield attempt(x.put_, at, one, accumulate=True)
        yield attempt(x.put_, at.float(), one), attempt(x.put_, at, one.int())
        for n in (1, 2, 3):
            y = torch.ones(1, 1, *[4] * n)
            pool = getattr(functional, f"max_pool{n}d")
            found, places = pool(y, 2, return_indices=True)
            unpool = getattr(functional, f"max_unpool{n}d")
            yield attempt(unpool, found, places, 2)
            yield attempt(unpool, found, places.int(), 2)

    def warned():
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            yield list(calls())
        yield sorted({str(w.message) for w in found})

    try:
        for mode in ("default", "error", "default", "warn", "error"):
            torch.set_deterministic_debug_mode(mode)
            yield list(warned())
    finally:
        torch.set_deterministic_debug_mode("default")


@case
def matmul_precision(torch):
    matmul, host = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul
    for chosen in ("high", "medium", "highest"):
        torch.set_float32_matmul_precision(chosen)
        yield torch.get_float32_matmul_precision(), matmul.allow_tf32
        yield matmul.fp32_precision, host.fp32_precision
    matmul.allow_tf32 = True
    yield torch.get_float32_matmul_precision(), torch.mm(*[torch.ones(2, 2)] * 2)
    matmul.allow_tf32 = False
    yield torch.get_float32_matmul_precision()
    matmul.fp32_precision = host.fp32_precision = "none"


def test_a_precision_holds_from_where_it_is_set():
    torch, rec = torchshim, torchshim._core.record.local.rec
    first = torch.ones(2, 2) @ torch.ones(2, 2)
    before = rec.bits
    torch.set_float32_matmul_precision("high")
    try:
        assert first._array is not None  # what was recorded before has run
        assert rec.bits != before
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).sum().item() == 8
    finally:
        torch.set_float32_matmul_precision("highest")
        torch.backends.cuda.matmul.fp32_precision = "none"
        torch.backends.mkldnn.matmul.fp32_precision = "none"
    assert rec.bits == before


def test_configuration_names_what_is_in_place_of_pytorchs_libraries():
    assert "JAX" in torchshim.__config__.show()
    assert "get_num_threads" in torchshim.__config__.parallel_info()
    assert torchshim.get_file_path("torch", "version.py") == torchshim.version.__file__


@case(warnings=False)
def hub(torch):
    before = torch.hub.get_dir()
    with tempfile.TemporaryDirectory() as folder:
        torch.hub.set_dir(folder)
        yield torch.hub.get_dir() == folder
        with open(os.path.join(folder, "hubconf.py"), "w") as file:
            file.write("dependencies = ['os']\ndef model(n, k=1):\n    return n + k\n")
        yield torch.hub.load(folder, "model", 2, k=3, source="local")
        yield attempt(torch.hub.load, folder, "other", source="local")
        yield attempt(torch.hub.load, folder, "model", source="nowhere")
        torch.save({"w": torch.ones(2)}, os.path.join(folder, "w.pt"))
        url = f"file://{folder}/w.pt"
        for _ in range(2):
            with contextlib.redirect_stdout(io.StringIO()):
                found = torch.hub.load_state_dict_from_url(url, folder + "/c")
            yield found
        target = os.path.join(folder, "again.pt")
        torch.hub.download_url_to_file(url, target, progress=False)
        yield os.path.exists(target), os.stat(target).st_mode & 0o444 == 0o444
        shown, used = io.StringIO(), torch.hub.tqdm
        torch.hub.tqdm = torch.hub._Faketqdm
        with contextlib.redirect_stderr(shown):
            torch.hub.download_url_to_file(url, target)
        torch.hub.tqdm = used
        yield shown.getvalue()
        refused = attempt(
            torch.hub.download_url_to_file, url, target + "x", "0" * 9, False
        )
        yield (
            type(refused),
            str(refused)[:30],
            sorted(name for name in os.listdir(folder) if name != "__pycache__"),
        )
    torch.hub.set_dir(before)


def test_repositories_on_github_are_refused():
    with pytest.raises(NotImplementedError, match="GitHub"):
        torchshim.hub.load("pytorch/vision", "resnet18")
