"""Devices against PyTorch 2.13; see `tests.core.recorded`.

What depends on the machine (how many accelerators there are) is taken to be that of
PyTorch's CPU build, which recorded the results.
"""

from __future__ import annotations

import copy
import doctest
import pickle
import subprocess
import sys
import threading
import types
from typing import Any

import numpy as np
import pytest

import torchshim
from tests.core import recorded
from torchshim._core import device as module
from torchshim._core import dtypes
from torchshim._functions import defaults

device = module.device
TYPES = (
    *("cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve"),
    *("fpga", "maia", "xla", "lazy", "vulkan", "mps", "meta", "hpu", "mtia"),
    *("privateuseone", "tpu", "gpu", "ort", "metal", "foo", "CUDA"),
)
STRINGS = (
    *TYPES,
    *(f"{t}:1" for t in TYPES),
    *("", "cuda:", "cuda:-1", "cuda:01", "cuda:00", "cuda: 1", "cuda:a", "cuda:1:2"),
    *(":1", "cuda1", "cpu ", " cpu", "cuda:+1", "cuda:1a", "cuda-1", "foo:", "foo:x"),
    *("cuda:1:", "cuda::1", "cuda_1", "c u d a", "é", "cpu\n", "1", "cuda:٣", "_"),
    *("foo_bar:1", "cuda:0", "cuda:127", "cuda:128", "cuda:255", "cuda:256"),
    *(
        "cuda:300",
        "cuda:99999",
        "cuda:2147483647",
        "cuda:2147483648",
        "cuda:4294967296",
    ),
    *("cuda:99999999999999999999", "cpu:0", "meta:3"),
)
ASPECTS = ("{}", "{}.type", "{}.index", "str({})", "hash({})", "{}.__reduce__()[1]")
ARGUMENTS = (
    *("'cuda', 1", "'cuda', -1", "'cuda', -2", "'cuda', 128", "'cuda:1', 1"),
    *("'cuda:1', None", "'cuda', None", "'cpu', 0", "'cuda', '1'", "'cuda', 1.0"),
    *("1", "0", "-1", "1.0", "None", "", "type='cuda', index=1", "type='cuda'"),
    *("device='cuda'", "device='cuda:1'", "device=1", "index=1", "type='cuda:1'"),
    *("torch.device('cuda:1')", "torch.device('cuda'), 1", "'cuda', 1, 2", "[]"),
    *("True", "200", "b'cpu'", "'foo', 1", "type='foo'", "'cuda', True"),
    *("'cuda', 2**40", "'cuda', 2**70", "'cuda', np.int64(1)", "np.int64(1)"),
    *(
        "'cuda', index=1",
        "'cuda:', 1",
        "'', 1",
        "np.str_('cpu')",
        "b'foo'",
        "b'cpu', 1",
    ),
    *("'cuda', foo=1", "'cuda', 1, foo=1", "foo=1", "type='cuda', index='a'", "type=1"),
    *("device=1.5", "device=None", "'cuda', type='cuda'", "2**40", "1, 1", "None, 1"),
    *("device=torch.device('cpu'), index=1", "[1]", "()", "(1, 'a')", "{}", "object()"),
    *("'cuda', []", "'cuda', None, None", "type='cuda', index=None", "type=None"),
    *("type='cuda', index=2, device='cpu'", "'cuda', -1, foo=1", "index=1, type='cpu'"),
    *(
        "torch.device",
        "type",
        "'cpu', device='cpu'",
        "device='cpu', foo=1",
        "'cpu', {}",
    ),
)
LINES = (
    *(
        aspect.format(f"torch.device({text!r})")
        for text in STRINGS
        for aspect in ASPECTS
    ),
    *(f"torch.device({arguments})" for arguments in ARGUMENTS),
    *(
        f"torch.device('cpu') {sign} {other}"
        for sign in ("==", "!=", "<", "<=", ">", ">=")
        for other in ("torch.device('cpu')", "torch.device('cuda:1')", "'cpu'", "None")
    ),
    *("torch.device('cpu') == torch.device('cpu:0')", "torch.device", "torch.device()"),
    *("torch.device('cuda:1') == torch.device('cuda', 1)", "torch.device.__name__"),
    *("setattr(torch.device('cpu'), 'index', 1)", "torch.device('cpu').foo"),
    *("setattr(torch.device('cpu'), 'foo', 1)", "type('A', (torch.device,), {})"),
    *("torch.device('cpu')(print)", "{torch.device('cuda:1'): 1}"),
    *("torch.device('cpu').__exit__(None, None, None)", "bool(torch.device('cpu'))"),
    *("f'{torch.device(\"cuda:3\")}'", "torch.device('cpu').__eq__(1)"),
    *("torch.get_default_device()", "torch.get_default_device(1)"),
    *(
        f"torch.set_default_device({a}); torch.get_default_device()"
        for a in (
            *(
                "'meta'",
                "'cpu'",
                "'cpu:0'",
                "torch.device('cuda:1')",
                "'cuda'",
                "'mps'",
            ),
            *(
                "'xla'",
                "'xpu'",
                "'vulkan'",
                "'meta:2'",
                "None",
                "'foo'",
                "1.5",
                "0",
                "",
            ),
            *("device='meta'", "'hpu'", "'privateuseone'", "'ideep'"),
        )
    ),
    "a = torch.set_default_device('meta'); torch.set_default_device(None); "
    "torch.get_default_device()",
    *(
        f"torch.set_default_tensor_type({t}); torch.get_default_dtype()"
        for t in (
            *("'torch.DoubleTensor'", "'torch.HalfTensor'", "'torch.BFloat16Tensor'"),
            *("'torch.FloatTensor'", "'torch.IntTensor'", "'torch.BoolTensor'"),
            *(
                "'torch.cuda.FloatTensor'",
                "'foo'",
                "'torch.foo'",
                "'nomod.FloatTensor'",
            ),
            *(
                "torch.float32",
                "1",
                "None",
                "'torch.ComplexFloatTensor'",
                "'torch.Tensor'",
            ),
            *("'torch.sparse.FloatTensor'", "'FloatTensor'", "'torch.cuda.foo'"),
            *(
                "'torch.UInt16Tensor'",
                "'torch.cuda.IntTensor'",
                "'math.pi'",
                "'math.foo'",
            ),
        )
    ),
)
# Sequences of changes of the default device; "in X" and "out" enter and leave a block,
# "set X" sets. The default is shown after each.
SEQUENCES = (
    ("in meta", "out"),
    ("in meta", "in cpu", "out", "out"),
    ("set meta", "in cpu", "out", "set None"),
    ("set meta", "set cpu", "set None"),
    ("in meta", "set cpu", "out", "set None", "out"),
    ("in meta", "set None", "out"),
    ("set meta", "in cpu", "set meta"),
    ("set meta", "in cpu", "set None"),
    ("set meta", "in cpu:0", "in meta:1", "out", "out", "set None"),
    ("set foo", "set meta", "set None"),
)


class Core:
    """The names of the package root that come from `device`."""

    device = module.device
    float32 = dtypes.float32
    get_default_device = staticmethod(module.get_default_device)
    set_default_device = staticmethod(module.set_default_device)
    get_default_dtype = staticmethod(dtypes.get_default_dtype)
    set_default_dtype = staticmethod(dtypes.set_default_dtype)
    set_default_tensor_type = staticmethod(defaults.set_default_tensor_type)


def walk(torch: Any, steps: tuple[str, ...]) -> str:
    """What the default device is after each step; in a thread, so from the start."""
    shown: list[str] = []
    blocks: list[Any] = []

    def one(step: str) -> Any:
        verb, _, name = step.partition(" ")
        if verb == "set":
            torch.set_default_device(None if name == "None" else name)
        elif verb == "in":
            blocks.append(torch.device(name))
            blocks[-1].__enter__()
        else:
            blocks.pop().__exit__(None, None, None)
        return torch.get_default_device()

    def every() -> None:
        shown.extend(recorded.outcome(lambda s=step: one(s)) for step in steps)

    thread = threading.Thread(target=every)
    thread.start()
    thread.join()
    return " | ".join(shown)


def run(torch: Any) -> recorded.Table:
    found: recorded.Table = {}
    for line in LINES:
        try:
            names = {"torch": torch, "np": np}
            found |= recorded.evaluate((line,), names)
        finally:
            torch.set_default_device(None)
            torch.set_default_dtype(torch.float32)
    for steps in SEQUENCES:
        found[" | ".join(steps)] = walk(torch, steps)
    return found


# PyTorch's text for "lazy" lists the backends that its build has.
USED = [name for name in TYPES[:20] if name != "lazy"]


def theirs(torch: Any) -> recorded.Table:
    found = run(torch)
    for name in USED:
        key = f"use {name}"
        found[key] = recorded.outcome(lambda n=name: torch.ones(1).to(n).device)
    return found


def ours() -> recorded.Table:
    found = run(Core())
    for name in USED:
        key = f"use {name}"
        found[key] = recorded.outcome(lambda n=name: module.resolve(device(n)))
    return found


@pytest.fixture
def cpu_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in module._PLATFORMS:
        if kind != "cpu":
            monkeypatch.setitem(module._jax_devices, kind, ())


@pytest.mark.usefixtures("cpu_only")
def test_recorded() -> None:
    assert not recorded.differences(recorded.table("device"), ours())


@pytest.mark.live
@pytest.mark.usefixtures("cpu_only")
def test_live() -> None:
    if recorded.LIVE.accelerator.is_available():
        pytest.skip("this torch has an accelerator")
    assert not recorded.differences(theirs(recorded.LIVE), ours())


def test_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torchshim, "device", device, raising=False)
    for text in ("cpu", "cuda:3", "meta"):
        d = device(text)
        assert device(text) is d
        assert device(d) is d
        assert copy.deepcopy(d) is d
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(d, protocol)) is d


def test_threads_have_their_own_default() -> None:
    seen = []
    with device("meta"):
        thread = threading.Thread(target=lambda: seen.append(module.default_device()))
        thread.start()
        thread.join()
        assert module.default_device() == device("meta")
    assert seen == [device("cpu")]


def test_error_leaves_default_alone() -> None:
    steps = ("set meta", "in cpu", "set meta", "out", "set None")
    # PyTorch's default device is lost after the error; here it stands.
    *_, error, after, reset = walk(Core(), steps).split(" | ")
    assert error.startswith("AssertionError: Found nested DeviceContext")
    assert after == "device(type='meta')"
    assert reset == "device(type='cpu')"


def test_block_ends_on_error() -> None:
    with pytest.raises(KeyError), device("meta"):
        raise KeyError
    assert module.default_device() == device("cpu")


class FakeDevice:
    def __init__(self, number: int) -> None:
        self.number = number


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, ...]:
    found = (FakeDevice(0), FakeDevice(1))
    monkeypatch.setitem(module._jax_devices, "cuda", found)
    monkeypatch.setattr(module, "_current_index", {})
    return found


def test_gpus(two_gpus: tuple[Any, ...]) -> None:
    assert module.device_count("cuda") == 2
    assert module.current_accelerator() == device("cuda")
    assert device(1) == device("cuda", 1)
    assert module.resolve(device("cuda")) == device("cuda:0")
    assert module.jax_device(device("cuda:1")) is two_gpus[1]
    module.set_current_index("cuda", 1)
    assert module.jax_device(device("cuda")) is two_gpus[1]
    with device("cuda"):
        assert module.default_device() == device("cuda")
        assert module.get_default_device() == device("cuda:1")
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        module.resolve(device("cuda:2"))
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        module.set_current_index("cuda", 2)
    assert module.current_index("cuda") == 1


@pytest.mark.usefixtures("two_gpus")
def test_legacy_tensor_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(defaults, "_warned", [])
    monkeypatch.setattr(defaults, "_of_types", [device("cpu")])

    class DoubleTensor:
        dtype, is_cuda, is_sparse = dtypes.float64, True, False

    class Sparse(DoubleTensor):
        is_sparse = True

    try:
        with pytest.warns(UserWarning, match="is deprecated as of PyTorch 2.1"):
            defaults.set_default_tensor_type(DoubleTensor)
        assert dtypes.get_default_dtype() is dtypes.float64
        assert module.default_device() == device("cuda")
        assert defaults.default_type_device().type == "cuda"
        with pytest.raises(TypeError, match="only dense types"):
            defaults.set_default_tensor_type(Sparse)
    finally:
        dtypes.set_default_dtype(dtypes.float32)
        module.set_default_device(None)


def test_deprecations_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(defaults, "_warned", [])
    monkeypatch.setattr(defaults, "_of_types", [device("cpu")])
    monkeypatch.setattr(module, "_warned", set())
    monkeypatch.setattr(
        module,
        "_interned",
        {k: v for k, v in module._interned.items() if k != "mkldnn"},
    )
    with pytest.warns(UserWarning, match="'mkldnn' is no longer used") as told:
        device("mkldnn")
        device("mkldnn:1")
    assert len(told) == 1
    with pytest.warns(UserWarning, match="is deprecated as of PyTorch 2.1") as told:
        defaults.set_default_tensor_type("torch.FloatTensor")
        defaults.set_default_tensor_type("torch.FloatTensor")
    assert len(told) == 1


def test_meta_has_no_data() -> None:
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        module.jax_device(device("meta"))


def test_import_starts_no_backend() -> None:
    program = (
        "import torchshim._core.device as d, sys\n"
        "d.device('cuda:1'); d.get_default_device()\n"
        "d.set_default_device('meta'); d.get_default_device()\n"
        "assert 'jax' not in sys.modules or "
        "not sys.modules['jax']._src.xla_bridge._backends"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_examples() -> None:
    runner = doctest.DocTestRunner()
    finder = doctest.DocTestFinder()
    names = dict(vars(module))
    for value in list(names.values()):
        own = getattr(value, "__module__", None) in (module.__name__, "torchshim")
        if own and isinstance(value, types.FunctionType | type):
            for test in finder.find(value, module=False, globs=dict(names)):
                runner.run(test)
    assert runner.tries > 10
    assert runner.failures == 0
