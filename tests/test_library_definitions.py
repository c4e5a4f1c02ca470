"""`torch.library`: namespaces, dispatch keys and kernels that come first."""

from __future__ import annotations

import re

from tests.oracle import attempt, case


def _told(function, *arguments):
    """The error without the places in files that it names."""
    found = attempt(function, *arguments)
    return re.sub(r" Duplicate registration.*|  \(Error occurred.*", "", str(found))


@case
def definitions(torch):
    lib = torch.library.Library("defined_lib", "DEF")
    yield (
        lib.define("f(Tensor x) -> Tensor"),
        _told(lib.define, "f(Tensor x) -> Tensor"),
    )
    yield _told(lib.define, "other::g(Tensor x) -> ()")
    lib._destroy()


@case
def kernels(torch):
    lib = torch.library.Library("kernel_lib", "DEF")
    lib.define("f(Tensor x) -> Tensor")
    yield (
        _told(lib.impl, "f", lambda x: x, "FOO"),
        _told(lib.impl, "f", lambda x: x, ""),
    )
    yield _told(lib.impl, "other::f", lambda x: x, "CPU")
    yield _told(lib.impl, 5, lambda x: x, "CPU")
    yield _told(lib.impl, "f", 5, "CPU")
    yield _told(torch.library.Library, "kernel_lib", "FRAGMENT", "FOO")
    keys = "CUDA AutogradCPU CompositeExplicitAutograd SparseCPU BackendSelect"
    yield [attempt(lib.impl, "f", lambda x: x, key) for key in keys.split()]
    lib._destroy()


@case
def kernels_that_come_first(torch):
    lib = torch.library.Library("early_lib", "DEF")
    yield lib.impl("g", lambda x: x * 3, "CPU")
    lib.define("g(Tensor x) -> Tensor")
    yield torch.ops.early_lib.g(torch.ones(2))
    lib._destroy()
