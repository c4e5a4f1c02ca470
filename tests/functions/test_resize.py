"""Other sizes in place: pieces of memory, memory that grows, what fills it."""

from __future__ import annotations

import numpy as np

from tests.oracle import attempt, case


@case
def smaller_and_back(torch):
    a = torch.arange(6.0)
    yield a.resize_(2), a.untyped_storage().nbytes()
    yield a.resize_(6).clone(), a.resize_(0).shape, a.resize_(2, 3).clone()
    a.resize_(4).add_(1)
    yield a.resize_(6), a.stride(), a.storage_offset()
    t = torch.arange(6.0).view(2, 3).t()
    yield t.resize_(2, 2), t.stride()
    c = torch.arange(24).view(1, 2, 3, 4).to(memory_format=torch.channels_last)
    yield c.resize_(1, 2, 2, 2, memory_format=torch.channels_last), c.stride()


@case
def on_memory_that_others_show(torch):
    a = torch.arange(6.0)
    b = a[2:]
    yield b.resize_(2).clone(), b.resize_(1, 3).stride(), b.storage_offset()
    yield b.add_(1), a
    c = torch.empty(0).set_(a)
    yield c.resize_(3).fill_(9), a, c.resize_(6)
    d, version = a.detach(), a._version
    yield d.resize_(3), a._version - version, a.data.resize_(2), a
    z = torch.arange(4.0).to(torch.complex64)
    yield z.conj()[1:].resize_(2), z.view(2, 2).resize_(3)
    bits = torch.arange(4, dtype=torch.int32)
    yield bits.view(torch.int16).resize_(3), bits
    leaf = torch.ones(3, requires_grad=True)
    yield leaf.detach().resize_(2), attempt(leaf.resize_, 2)
    (leaf * 2).sum().backward()
    yield leaf.grad


@case
def growing_what_others_show(torch):
    a = torch.arange(6.0)
    b, v = a[1:], a.view(2, 3)
    b.resize_(7)[5:] = 8
    yield a, b, v, a.untyped_storage().nbytes()
    b.fill_(7)
    yield a, v, a.data_ptr() == v.data_ptr() == b.data_ptr() - 4
    x = torch.arange(4.0)
    y = x[1:3]
    # Handing a tensor out ends PyTorch's leave to resize it: copies are shown.
    yield torch.add(torch.ones(3), 1, out=y) is y, x.clone(), y.clone()
    yield torch.add(torch.ones(5), 1, out=y).clone(), x, y[:1].mul_(2)
    m = torch.empty(2, device="meta")
    yield m[1:].resize_(5).shape, m.untyped_storage().nbytes()


@case
def storages_that_grow(torch):
    a = torch.arange(4.0)
    s = a.untyped_storage()
    s.resize_(24)
    yield a, s.nbytes(), a.untyped_storage().nbytes(), a.resize_(4, 1).add_(1)
    s[16:] = 0
    yield a.resize_(6), torch.empty(0).set_(s).shape


@case
def memory_of_numpy(torch):
    n = np.arange(4.0)
    x = torch.from_numpy(n)
    yield x.resize_(2).clone(), x.resize_(2, 2).mul_(2).clone(), n
    yield attempt(x.resize_, 5)
    yield x.untyped_storage().resizable(), torch.ones(1).untyped_storage().resizable()
    y = torch.arange(4.0)
    shown = y.numpy()
    yield y.resize_(2).zero_(), shown


@case
def what_nobody_has_chosen(torch):
    torch.use_deterministic_algorithms(True)
    try:
        yield torch.empty(2), torch.empty(2, 3).t(), torch.Tensor(2), torch.empty(0)
        yield torch.empty_like(torch.ones(2)), torch.empty_strided((2, 2), (3, 1))
        yield torch.ones(1).new_empty(2), torch.ones(2).new(3), torch.IntTensor(2)
        yield torch.empty_permuted((1, 2), (1, 0)), torch.zeros(2), torch.ones(2)
        kinds = "float32 int32 bool complex64 float16 bfloat16 uint8 uint16"
        for kind in kinds.split():
            dtype = getattr(torch, kind)
            yield torch.zeros(1, dtype=dtype).resize_(2), torch.empty(1, dtype=dtype)
        a = torch.arange(4.0)
        yield a.resize_(2).resize_(4), a.resize_(5), a[1:].resize_(6)
        torch.utils.deterministic.fill_uninitialized_memory = False
        yield torch.utils.deterministic.fill_uninitialized_memory
        yield torch.empty(1).shape, torch.zeros(1).resize_(3).shape
    finally:
        torch.use_deterministic_algorithms(False)
        torch.utils.deterministic.fill_uninitialized_memory = True
    yield torch.nn.Linear(1, 1).weight.shape


@case
def taken_back(torch):
    # The memory that was left is used again, whatever was recorded in between.
    total = torch.zeros(())
    x = torch.zeros(4)
    for step in range(3):
        x.resize_(2).add_(step)
        total = total + x.sum()
        x.resize_(4)
        total = total + x[3]
        x[3] = step
    yield total, x
    w = torch.ones(3, requires_grad=True)
    out = torch.empty(5)
    with torch.no_grad():
        torch.mul(w, 2, out=out.resize_(0))
    yield out, (w * out).sum().backward(), w.grad
