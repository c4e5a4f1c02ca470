"""The layers of docs/architecture.md hold: imports only look down."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "torchshim"


def core_files() -> list[str]:
    """The files of `_core/`, in the order that the page has them in."""
    page = (PACKAGE.parent / "docs/architecture.md").read_text()
    [block] = re.findall(
        r"^    _core/ (.*?)^    _ops/ ", page, re.MULTILINE | re.DOTALL
    )
    lines = [re.split(r"  +", line.strip())[0] for line in block.splitlines()]
    return " ".join(lines).split()


# Lowest first. A module may import from earlier layers and from its own; within
# `_core` the order of the files is part of the design.
LAYERS = [
    ["_version", "_hooks", "_lazy", "_warnings", "_pytree", "_errors"],
    [f"_core.{name}" for name in core_files()],
    ["_ops", "_printing", "_attributes"],
    ["_arguments", "_parser", "_refusal", "_structseq"],
    ["_function_modes", "_overrides"],
    ["_out", "_hot_path"],
    ["_bind", "_names"],
    ["_tensor", "_tensor_str", "_counter"],
    ["_derived", "_explain"],
    ["_autocast"],
    ["_functions"],
    ["_prims_common"],
    ["_device_index", "_settings", "_conditions", "_questions"],
    ["_streams", "_config_module"],
    ["autograd", "random", "storage"],
    ["amp", "_picture"],
    ["cpu"],
    ["cuda"],
    ["accelerator", "backends", "mps", "mtia", "xpu"],
    [
        "__config__",
        "__future__",
        "onnx",
        "futures",
        "linalg",
        "ops",
        "types",
        "_library",
        "profiler",
        "fft",
        "signal",
        "sparse",
        "special",
        "torch_version",
        "return_types",
        "functional",
        "overrides",
        "_C",
        "_VF",
        "_linalg_utils",
        "_lobpcg",
        "_legacy_types",
        "_utils_internal",
        "_vmap_internals",
        "library",
        "classes",
        "_custom_ops",
        "version",
        "testing",
        "masked",
        "nested",
        "package",
        "quasirandom",
        "monitor",
        "_decomp",
        "_dispatch",
        "_logging",
        "_prims",
        "_refs",
    ],
    ["distributed"],
    ["nn"],
    ["_quantized", "_quantization"],
    ["ao"],
    ["quantization"],
    ["nn.intrinsic", "nn.qat", "nn.quantizable", "nn.quantized"],
    ["fx"],
    ["distributions"],
    ["func"],
    ["_functorch", "_higher_order_ops", "nn.utils._per_sample_grad"],
    ["functorch"],
    ["utils._foreach_utils"],
    ["optim"],
    ["distributed.utils"],
    ["distributed.algorithms", "distributed.fsdp", "distributed._composable"],
    ["distributed.optim"],
    ["_dynamo", "_inductor"],
    ["distributed.checkpoint._optimizer_state", "distributed.checkpoint.state_dict"],
    ["_compile"],
    ["serialization", "_weights_only_unpickler", "hub"],
    ["compiler", "jit"],
    ["_jit_internal"],
    ["utils"],
    ["distributed.algorithms._checkpoint"],
    ["export"],
    ["_utils"],
    ["_subclasses"],
    ["testing._internal"],
    ["multiprocessing"],
    ["_alias", "_well_known", "_kept_programs"],
    ["__init__", "__main__"],
]


@functools.cache
def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[-1] == "__init__" and len(parts) > 1:
            parts = parts[:-1]
        found[".".join(parts)] = path
    return found


@functools.cache
def layer(module: str) -> tuple[int, int]:
    """(layer, place within it)."""
    found = [
        (len(name), i, j if name.startswith("_core.") else 0)
        for i, names in enumerate(LAYERS)
        for j, name in enumerate(names)
        if module == name or module.startswith(name + ".")
    ]
    if found:
        return max(found)[1:]  # the innermost package named
    if module == "_core":
        return 0, 0
    raise AssertionError(f"{module} belongs to no layer: add it to LAYERS")


def imports(path: Path, module: str) -> set[str]:
    """Modules of the package that a file imports when it is loaded."""
    found: set[str] = set()
    known = modules()
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]

    def visit(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                continue
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                continue
            if isinstance(child, ast.Import):
                found.update(a.name for a in child.names)
            elif isinstance(child, ast.ImportFrom):
                base = child.module or ""
                if child.level:
                    up = package.split(".") if package else []
                    up = up[: len(up) - child.level + 1]
                    base = ".".join(["torchshim", *up, *([base] if base else [])])
                for alias in child.names:
                    full = f"{base}.{alias.name}"
                    short = full.removeprefix("torchshim.")
                    found.add(full if short in known else base)
            visit(child)

    visit(ast.parse(path.read_text()))
    return found


@pytest.mark.parametrize("module", list(modules()))
def test_imports_look_down(module):
    own = layer(module)
    for name in imports(modules()[module], module):
        assert name.split(".")[0] != "torch", f"{module} imports {name}"
        if name == "torchshim" or not name.startswith("torchshim."):
            continue
        other = name.removeprefix("torchshim.")
        place = layer(other)
        assert place <= own, f"{module} imports {name}, which lies above it"


@pytest.mark.parametrize("module", list(modules()))
def test_files_stay_readable(module):
    lines = modules()[module].read_text().count("\n")
    assert lines <= 600, f"{module} has {lines} lines: it is two files"
