"""Modules that programs import and rarely use: PyTorch's helpers, the ONNX exporter."""

from __future__ import annotations

import subprocess
import sys

import pytest

from compat_suite.public import listing
from compat_suite.public.coverage import HAS, coverage
from tests.oracle import attempt, case


@case
def flattened(torch):
    from importlib import import_module

    utils = import_module(f"{torch.__name__}._utils")
    tensors = [torch.arange(6.0).view(2, 3).t(), torch.ones(2)]
    flat = utils._flatten_dense_tensors(tensors)
    yield flat, utils._unflatten_dense_tensors(flat + 1, tensors)
    half = torch.ones(3, dtype=torch.float16)
    sparse = torch.eye(3).to_sparse()
    several = [torch.ones(4), half, torch.zeros(5), half + 1, torch.ones(1), sparse]
    for limit in (1, 16, 24, 1000):
        groups = list(utils._take_tensors(several, limit))
        yield [[t.type() for t in group] for group in groups]
        again = utils._reorder_tensors_as(
            [t for group in groups for t in group], several
        )
        yield [a is b for a, b in zip(again, several, strict=True)]


@case
def keys_of_the_dispatcher(torch):
    keys, kind = torch._C.DispatchKey, torch._C.DispatchKeySet
    yield repr(keys.AutocastCPU), str(keys.Meta), int(keys.SparseCsrCUDA), keys.CPU.name
    yield [(name, int(key)) for name, key in sorted(keys.__members__.items())]
    both = kind(keys.AutocastCUDA) | kind(keys.AutocastCPU)
    yield repr(both), both.has(keys.CPU), both.has(keys.AutocastCPU)
    yield both.remove(keys.AutocastCPU) == kind(keys.AutocastCUDA), both.add(keys.CPU)
    yield both - kind(keys.AutocastCPU), both & kind(keys.AutocastCPU)


def test_onnx_can_be_imported_and_refuses():
    import torchshim as torch

    assert torch.onnx.is_in_onnx_export() is False
    with pytest.raises(NotImplementedError, match="cannot be exported to ONNX"):
        torch.onnx.export(torch.nn.Linear(1, 1), (torch.ones(1),), "x.onnx")


@case
def private_names(torch):
    """Names that programs import although they are private."""
    import sys
    from importlib import import_module

    def name(module, attribute):
        path = f"{torch.__name__}.{module}"
        return getattr(sys.modules.get(path) or import_module(path), attribute)

    yield name("distributions.utils", "_standard_normal")((2,), torch.float64, "cpu")
    factor = torch.tensor([[2.0, 0.0], [1.0, 1.0]])
    vector = torch.tensor([1.0, 3.0])
    yield name("distributions.multivariate_normal", "_batch_mahalanobis")(
        factor, vector
    )
    yield name("distributions.multivariate_normal", "_batch_mv")(factor, vector)
    yield name("nn._reduction", "get_enum")("mean")
    yield (
        isinstance(vector, name("_tensor", "Tensor")),
        name("types", "_dtype").__name__,
    )
    yield name("types", "_int") is int
    sums = name("distributions.utils", "_sum_rightmost")
    yield sums(factor, 0), sums(factor, 1), sums(factor, 2)
    data = "utils.data.dataloader"
    yield str(name(data, "_collate_fn_t")), str(name(data, "_worker_init_fn_t"))
    yield "dict[str, str] | None" in str(name("serialization", "MAP_LOCATION"))
    node_type = name("utils._pytree", "_get_node_type")
    for tree in ([1], (1,), {}, 3, None, slice(1)):
        yield node_type(tree).__name__
    text = name("_tensor_str", "_tensor_str")
    for x in (factor, vector[:0], torch.arange(3) > 1, torch.tensor(1 + 2j)):
        yield text(x, 7)
    suffixes = ["dtype=torch.int64", "size=(3,)"]
    yield name("_tensor_str", "_add_suffixes")(
        "Index(" + "1, " * 20, suffixes, 6, False
    )
    trees = "utils._pytree"
    leaves, spec = name(trees, "tree_flatten")([torch.Size([2, 3]), 1])
    yield leaves, str(spec), name(trees, "tree_unflatten")(leaves, spec)
    yield str(name(trees, "tree_flatten_with_path")(torch.Size([2, 3]))[0])
    yield issubclass(torch.futures.Future, torch.Future)
    active, seen = torch._C._are_functorch_transforms_active, []
    for transform in (torch.vmap, torch.func.jacrev):
        transform(lambda x: (seen.append(active()), x)[1])(vector)
    yield seen, active()
    parameter = torch.nn.Parameter(vector)
    yield parameter._cdata == parameter._cdata, parameter._cdata == vector._cdata
    yield name("utils._pytree", "_is_leaf")(vector), name("utils._pytree", "LeafSpec")()
    yield name("_subclasses.fake_tensor", "is_fake")(vector)
    yield name("fx.experimental.proxy_tensor", "get_proxy_mode")()
    constants = "distributed.constants"
    yield name(constants, "default_pg_timeout").total_seconds()
    yield name(constants, "default_pg_nccl_timeout")
    yield torch.torch is torch, isinstance(torch.nn.ReLU(), torch.ScriptModule)
    yield torch.ScriptFunction is torch.jit.ScriptFunction
    yield torch.CompilationUnit is torch.jit.CompilationUnit
    yield name("nn._reduction", "legacy_get_enum")(None, False, emit_warning=False)


@case.over(
    "optim",
    "nn.modules.utils",
    "utils.data.dataset",
    "utils.data.distributed",
    "utils.data.sampler",
    "multiprocessing.spawn",
)
def what_a_star_imports(torch, module):
    from importlib import import_module

    found = import_module(f"{torch.__name__}.{module}")
    return sorted(found.__all__), all(hasattr(found, n) for n in found.__all__)


@case
def what_a_star_of_torch_imports(torch):
    scope = {}
    exec(f"from {torch.__name__} import *", scope)
    lacking = {n for n, state in coverage()["torch"].items() if state != HAS}
    names = [n for n in listing.read()["torch"] if n not in lacking]
    yield [name for name in names if name in scope]
    yield [name for name in names if name not in scope]
    yield scope["float"] is torch.float32, scope["abs"](scope["tensor"](-1.0))
    yield scope["newaxis"], scope["pi"], "random" in scope, "Parameter" in scope


@case
def modules_that_programs_find_torch_in(torch):
    labels = torch.tensor([2, 0])
    yield torch.sparse.torch.eye(3).index_select(dim=0, index=labels)
    yield torch.nn.functional.torch is torch, torch.autograd.torch is torch
    yield torch.nn.init.torch is torch
    yield torch.cuda.torch is torch, torch.utils.torch is torch
    yield torch.testing is not torch, torch.special.torch.sparse.torch is torch


@case
def conditions(torch):
    mask = torch.tensor([True, False])
    for condition in (True, False, 1, mask):
        yield attempt(torch._check, condition)
        yield attempt(torch._check_index, condition, lambda: "told")
    for function in (
        torch._check_value,
        torch._check_type,
        torch._check_not_implemented,
    ):
        yield attempt(function, False, lambda: 3)
    yield attempt(torch._check, False, "text")
    yield attempt(torch._check_with, KeyError, False, lambda: "key")
    for condition in (mask, mask[:1], torch.ones(2), True):
        yield attempt(torch._check_tensor_all, condition, lambda: "told")
        yield attempt(torch._check_tensor_all_with, KeyError, condition)
    for size, options in ((3, {}), (-1, {}), (3, {"max": 2}), (3, {"max": 3})):
        yield attempt(torch._check_is_size, size, **options)
    yield torch._shape_as_tensor(torch.ones(2, 3)), torch._shape_as_tensor(mask[0])
    yield attempt(torch._shape_as_tensor, 3)


@case
def device_of_the_accelerator(torch):
    yield torch._C._get_accelerator(), torch._C._get_accelerator(False)
    yield attempt(torch._C._get_accelerator, check=True)


def test_submodules_of_distributed_need_no_import():
    # In a process of its own, where nothing else has imported them.
    code = "import torchshim as t; d = t.distributed; d.constants, d.device_mesh, d.rpc"
    subprocess.run([sys.executable, "-c", code], check=True)


@case
def marks_of_torchscript(torch):
    from importlib import import_module

    internal = import_module(f"{torch.__name__}._jit_internal")

    def first(x, flag=False):
        """The first of two."""
        return "first", x, flag

    def second(x, flag=False):
        return "second", x, flag

    pick = internal.boolean_dispatch("flag", 1, False, first, second, "here", "pick")
    yield pick(1), pick(2, True), pick(3, flag=True), pick.__name__, pick.__doc__
    yield attempt(internal.boolean_dispatch, "x", 0, True, first, first, None, None)
    yield internal._copy_to_script_wrapper(first)._torchscript_modifier
    yield internal.BroadcastingList2[int], internal.is_scripting()
    yield internal.FunctionModifiers.UNUSED, internal.FunctionModifiers.IGNORE
    utils = import_module(f"{torch.__name__}._dynamo.utils")
    yield type(utils.counters).__name__, utils.is_compile_supported("cpu")
    config = import_module(f"{torch.__name__}._dynamo.config")
    with utils.disable_cache_limit():
        yield config.recompile_limit, config.accumulated_recompile_limit
    yield config.recompile_limit, config.accumulated_recompile_limit
    fsdp = import_module(f"{torch.__name__}.distributed.fsdp")
    yield sorted(set(fsdp.__all__) - {"FSDPModule", "fully_shard"})
    api = import_module(f"{torch.__name__}.distributed.fsdp.api")
    kinds = import_module(
        f"{torch.__name__}.distributed.fsdp.fully_sharded_data_parallel"
    )
    settings = api.StateDictSettings(
        api.StateDictType.FULL_STATE_DICT,
        api.FullStateDictConfig(),
        api.FullOptimStateDictConfig(),
    )
    yield repr(settings), list(kinds.OptimStateKeyType.__members__)


# What a function of an operator does is written and compiled at its first call.
FIRST_CALLS = """
import sys, threading
import torchshim as torch
from torchshim import _bind

assert not _bind._CODE and "jax.extend.pallas" not in sys.modules
x = torch.ones(2, 3)
made = len(_bind._CODE)
for call in (lambda: torch.absolute("x"), lambda: torch.exp(x, x), lambda: x.flip()):
    texts = []
    for _ in range(2):
        try:
            call()
        except TypeError as error:
            texts.append(str(error))
    assert texts[0] == texts[1] and len(texts) == 2, texts
assert torch.absolute.__name__ == "absolute" and torch.abs is not torch.absolute
assert len(_bind._CODE) > made

start, results = threading.Barrier(8), []

def work():
    start.wait()
    results.append(torch.addcmul(x, x, x, value=2.0).tolist())

threads = [threading.Thread(target=work) for _ in range(8)]
for each in threads: each.start()
for each in threads: each.join()
assert results == [[[3.0] * 3] * 2] * 8, results
"""


def test_functions_of_operators_are_compiled_when_they_are_called():
    subprocess.run([sys.executable, "-c", FIRST_CALLS], check=True)


def test_packages_register_how_their_operators_are_exported():
    import torchshim as torch
    from torchshim.onnx import symbolic_opset9, symbolic_opset11  # noqa: F401
    from torchshim.onnx.symbolic_helper import parse_args

    symbolic = parse_args("v", "f")(lambda g, x, a: x)
    assert symbolic(None, 1, 2) == 1
    assert symbolic_opset9._prepare_onnx_paddings(2, [1, 2]) == [0, 1, 0, 2]
    torch.onnx.register_custom_op_symbolic("t_imports::f", symbolic, 11)
    torch.onnx.unregister_custom_op_symbolic("t_imports::f", 11)
    with pytest.raises(torch.onnx.OnnxExporterError, match="domain::name"):
        torch.onnx.register_custom_op_symbolic("f", symbolic, 11)


def test_libraries_of_compiled_operators_are_refused_as_missing_ones():
    import torchshim as torch

    with pytest.raises(OSError, match="Could not load this library: /p/t_compiled/x"):
        torch.ops.load_library("/p/t_compiled/x.so")
    assert torch.ops.loaded_libraries == set()

    # What is said of their operators afterwards is let go, nothing else.
    @torch.library.register_fake("t_compiled::f")
    def fake(x):
        return x

    assert fake(1) == 1
    assert torch.library.register_fake("t_compiled::f", fake) is fake
    with pytest.raises(RuntimeError, match="operator t_other::f does not exist"):
        torch.library.register_fake("t_other::f")
    with pytest.raises(AttributeError, match="no attribute 'f'"):
        torch.ops.t_compiled.f(1)
    with pytest.raises(OSError, match="Could not load this library: /p/c/x"):
        torch.classes.load_library("/p/c/x.so")
    assert torch.classes.loaded_libraries == set()
    with pytest.raises(RuntimeError, match=r"class 't_compiled\.C', but"):
        torch.classes.t_compiled.C(1)


def test_libraries_of_tests_are_loaded_and_have_nothing():
    import torchshim as torch
    from torchshim.testing._internal.common_utils import find_library_location

    found = find_library_location("libtorchbind_test.so")
    assert found.name == "libtorchbind_test.so"
    torch.ops.load_library(str(found))
    with pytest.raises(RuntimeError, match="t exist! Ensure"):
        torch.classes._TorchScriptTesting._ReLUClass([1])
