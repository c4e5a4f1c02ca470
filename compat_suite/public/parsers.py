"""Records what PyTorch's parsers take: `python -m compat_suite.public.parsers`.

Needs torch 2.13.0 and PyYAML: the parsers' signatures are generated from PyTorch's list
of operators, as its build does. Those that PyTorch writes by hand stand here. Functions
are listed that torchshim has, and that PyTorch does not write in Python.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torchgen

import torchshim
from torchshim import _parser

_SPARSE = (
    "ScalarType dtype=None, Layout? layout=None, Device? device=None, "
    "bool pin_memory=False, bool requires_grad=False, bool check_invariants=None)"
)
_TO = "bool non_blocking=False, bool copy=False, *, MemoryFormat? memory_format=None)"
_AWAY = "bool non_blocking=False, *, MemoryFormat? memory_format=None)"
_MADE = "ScalarType dtype=None, Device? device=None, "
_CASTS = "short long int half bool cfloat float cdouble double char byte bfloat16 cpu"
_COMPRESSED = {
    "csr": ("crow", "col"),
    "csc": ("ccol", "row"),
    "bsr": ("crow", "col"),
    "bsc": ("ccol", "row"),
}
#: The parsers that are not generated, from PyTorch's C++ sources.
BY_HAND = {
    "torch": [
        f"tensor(PyObject* data, *, {_MADE}bool pin_memory=False, "
        "bool requires_grad=False)",
        "as_tensor(PyObject* data, *, ScalarType dtype=None, Device? device=None)",
        "asarray(PyObject* obj, *, ScalarType? dtype=None, Device? device=None, "
        "bool? copy=None, bool? requires_grad=None)",
        "frombuffer(PyObject* buffer, *, ScalarType dtype, int64_t count=-1, "
        "int64_t offset=0, bool requires_grad=False)",
        "range(Scalar start, Scalar end, Scalar step=1, *, Tensor out=None, "
        "ScalarType dtype=None, Layout layout=torch.strided, Device device=None, "
        "bool requires_grad=False)",
        "nonzero(Tensor input, *, bool as_tuple=False, Tensor out=None)",
        "numel(Tensor input)",
        "get_device(Tensor input)",
        "set_anomaly_enabled(bool enabled, bool check_nan=True)",
        *(
            line
            for kind, (first, second) in _COMPRESSED.items()
            for line in (
                f"sparse_{kind}_tensor(PyObject* {first}_indices, "
                f"PyObject* {second}_indices, PyObject* values, IntArrayRef size, *, "
                f"{_SPARSE}",
                f"sparse_{kind}_tensor(PyObject* {first}_indices, "
                f"PyObject* {second}_indices, PyObject* values, *, {_SPARSE}",
            )
        ),
        "sparse_compressed_tensor(PyObject* compressed_indices, "
        f"PyObject* plain_indices, PyObject* values, IntArrayRef size, *, {_SPARSE}",
        "sparse_compressed_tensor(PyObject* compressed_indices, "
        f"PyObject* plain_indices, PyObject* values, *, {_SPARSE}",
        "sparse_coo_tensor(PyObject* indices, PyObject* values, *, "
        f"{_MADE}bool pin_memory=False, bool requires_grad=False, "
        "bool check_invariants=None, bool is_coalesced=None)",
        "sparse_coo_tensor(PyObject* indices, PyObject* values, IntArrayRef size, *, "
        f"{_MADE}bool pin_memory=False, bool requires_grad=False, "
        "bool check_invariants=None, bool is_coalesced=None)",
        f"sparse_coo_tensor(IntArrayRef size, *, {_MADE}"
        "bool requires_grad=False, bool check_invariants=None)",
    ],
    "Tensor": [
        *(f"{name}(*, MemoryFormat? memory_format=None)" for name in _CASTS.split()),
        "is_contiguous(*, MemoryFormat memory_format=contiguous_format)",
        "contiguous(*, MemoryFormat memory_format=contiguous_format)",
        "requires_grad_(bool requires_grad=True)",
        f"type(PyObject* dtype=None, {_AWAY}",
        f"type(PyObject* dtype=None, {_AWAY}|deprecated".replace(
            "non_blocking", "async"
        ),
        f"to(Device device=None, ScalarType dtype=None, {_TO}",
        f"to(ScalarType dtype, {_TO}",
        f"to(Tensor tensor, {_TO}",
        f"cuda(Device? device=None, {_AWAY}",
        f"cuda(Device? device=None, {_AWAY}|deprecated".replace(
            "non_blocking", "async"
        ),
        "set_()",
        "set_(Storage source)",
        "set_(Storage source, SymInt storage_offset, SymIntArrayRef size, "
        "SymIntArrayRef stride=None)",
        "set_(Tensor source)",
        "set_(Tensor source, SymInt storage_offset, SymIntArrayRef size, "
        "SymIntArrayRef stride=None)",
        "map_(Tensor other, PyObject* callable)",
        "map2_(Tensor x, Tensor y, PyObject* callable)",
        "copy_(Tensor other, bool non_blocking=False)",
        "copy_(Tensor other, bool async=False)|deprecated",
        "nonzero()",
        "nonzero(*, bool as_tuple)",
        "as_subclass(PyObject* cls)",
        f"new_tensor(PyObject* data, *, {_MADE}bool requires_grad=False)",
        "numpy(*, bool force=False)",
        "stride(int64_t? dim=None)",
        "size(int64_t? dim=None)",
    ],
}
#: What functions call that PyTorch writes in Python, and that pass arguments on.
INNER = (
    "cross_entropy_loss nll_loss_nd pad one_hot leaky_relu leaky_relu_ elu elu_ celu "
    "celu_ hardtanh hardtanh_ relu6 relu6_ rrelu rrelu_ glu layer_norm group_norm "
    "rms_norm batch_norm instance_norm huber_loss smooth_l1_loss triplet_margin_loss "
    "poisson_nll_loss embedding_renorm_ im2col col2im dropout kl_div "
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d "
    "_upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d "
    "upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d "
    "_upsample_bilinear2d_aa _upsample_bicubic2d_aa"
).split()
_SPACES = ("torch", "Tensor", "nn", "fft", "linalg", "special", "sparse", "nested")


def _generated() -> dict[str, dict[str, list[str]]]:
    """namespace -> name -> signatures, as PyTorch's build makes them."""
    root = Path(torchgen.__file__).with_name("packaged")
    sys.path.insert(0, str(root))
    from torchgen.gen import parse_native_yaml
    from torchgen.packaged.autograd import gen_python_functions as build

    native = root / "ATen" / "native"
    parsed = parse_native_yaml(
        str(native / "native_functions.yaml"), str(native / "tags.yaml")
    )
    functions = list(filter(build.should_generate_py_binding, parsed.native_functions))
    deprecated = str(root / "autograd" / "deprecated.yaml")
    found: dict[str, dict[str, list[str]]] = {}
    for space in _SPACES:
        method = space == "Tensor"
        pairs = build.load_signatures(functions, deprecated, method=method)
        chosen = {"torch": "torch", "Tensor": "variable_method"}.get(space, space)
        kind = "is_py_variable_method" if method else f"is_py_{chosen}_function"
        groups = build.group_filter_overloads(pairs, getattr(build, kind))
        found[space] = {
            str(name): [
                str(each.signature.signature_str(symint=True))
                for each in build.group_overloads(overloads, symint=True)
            ]
            for name, overloads in groups.items()
        }
    for space, lines in BY_HAND.items():
        for line in lines:
            found[space].pop(line.partition("(")[0], None)
        for line in lines:
            found[space].setdefault(line.partition("(")[0], []).append(line)
    return found


def _public(space: str) -> Iterator[tuple[str, Any]]:
    """The functions of a namespace that torchshim has and PyTorch writes in C++."""
    path = {"nn": "nn.functional", "torch": "", "Tensor": "Tensor"}.get(space, space)
    theirs, ours = torch, torchshim
    for part in filter(None, path.split(".")):
        theirs, ours = getattr(theirs, part), getattr(ours, part)
    for name in sorted(dir(theirs)):
        member = getattr(theirs, name)
        written = inspect.isbuiltin(member) or inspect.ismethoddescriptor(member)
        if written and not name.startswith("__") and hasattr(ours, name):
            yield name, member


def lines() -> Iterator[str]:
    """The lines of the file."""
    yield "# What the argument parsers of PyTorch 2.13.0 take. Recorded by"
    yield "# `python -m compat_suite.public.parsers`."
    generated = _generated()
    for space in _SPACES:
        title = "nn.functional" if space == "nn" else space
        yield f"[{title}]"
        for name, member in _public(space):
            called = getattr(member, "__name__", name)
            prefix = f"{space}_" if space not in ("torch", "Tensor", "nn") else ""
            table = generated[space]
            key = next((k for k in (prefix + name, called, name) if k in table), None)
            if space == "nn" and key is None:
                key, table = called, generated["torch"]
            for line in table.get(key or "", ()):
                own = line.partition("(")[0].removeprefix(f"{title}_")
                yield line if own == name else f"{name}: {line}"
    yield "# Called by functions of nn.functional that are written in Python."
    yield "[nn]"
    for name in INNER:
        yield from generated["nn"].get(name) or generated["torch"][name]


def main() -> None:
    text = functools.reduce(lambda a, b: f"{a}{b}\n", lines(), "")
    _parser.SIGNATURES.write_text(text)


if __name__ == "__main__":
    main()
