"""Names that programs ask for, and files that are no files."""

from __future__ import annotations

import io
import tempfile

from tests.oracle import attempt, case


@case
def offsets_of_generators(torch):
    g = torch.Generator()
    yield attempt(g.graphsafe_get_state), attempt(g.graphsafe_set_state, g)
    yield attempt(g.graphsafe_set_state, 5)
    yield attempt(g.get_offset), attempt(g.set_offset, 0), attempt(g.set_offset, "a")


@case
def hooks_pushed(torch):
    private = torch._C._autograd
    x = torch.ones(2, requires_grad=True)
    private._push_saved_tensors_default_hooks(lambda t: t * 2, lambda t: t + 1)
    y = (x * x).sum()
    private._pop_saved_tensors_default_hooks()
    y.backward()
    yield x.grad
    yield attempt(private._pop_saved_tensors_default_hooks)


@case(raises=AssertionError)
def files(torch):
    with tempfile.TemporaryDirectory() as folder:
        yield attempt(torch.save, torch.ones(2), folder)
    yield attempt(torch.load, io.StringIO("a")), attempt(torch.load, io.StringIO(""))


@case
def places(torch):
    yield torch.utils.cmake_prefix_path.endswith("share/cmake")
