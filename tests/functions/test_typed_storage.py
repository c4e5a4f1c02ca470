"""Storages as sequences of numbers: made, indexed, written to, converted, read."""

from __future__ import annotations

import copy
import io
import warnings

import numpy as np

from tests.oracle import attempt, case, evaluate


@case(warnings=False)
def made_and_indexed(torch):
    s = torch.FloatStorage([1, 2, 3])
    yield s.tolist(), s[-1], len(s), s.dtype, s.type(), s.pickle_storage_type()
    yield [attempt(lambda i=i: s[i]) for i in (slice(0, 2), "a", 5)]
    s[0:2] = 9
    s[2] = 4
    yield s.tolist(), attempt(s.__setitem__, "a", 1)
    yield torch.TypedStorage([1, 2], dtype=torch.half), torch.TypedStorage()
    yield attempt(torch.TypedStorage, 1, 2), attempt(torch.TypedStorage, "a")
    yield attempt(torch.TypedStorage, wrap_storage=torch.UntypedStorage(8))
    yield attempt(torch.storage._LegacyStorage), s == s, s == s.clone()
    yield torch.Storage([1, 2.5]).tolist(), torch.Storage is torch.FloatStorage
    torch.set_default_dtype(torch.bfloat16)
    try:
        yield torch.Storage is torch.BFloat16Storage, "Storage" in dir(torch)
    finally:
        torch.set_default_dtype(torch.float32)


@case(warnings=False)
def written_and_converted(torch):
    s = torch.IntStorage([-1, 0, 3])
    yield [getattr(s, n)() for n in ("float", "bool", "byte", "complex_float", "half")]
    yield s.fill_(2).tolist(), s.copy_(torch.IntStorage([4, 5, 6])).tolist()
    yield attempt(s.copy_, torch.DoubleStorage([4, 5, 6]))
    t = torch.arange(4.0)
    u = t.untyped_storage()
    t.storage()[1] = 7
    yield t, u.tolist()[:8], u.fill_(0).nbytes(), t
    u[3] = 64
    yield t, attempt(lambda: u[1.5]), u.type(), u.new(), u.is_pinned()
    meta = torch.TypedStorage([1, 2], device="meta", dtype=torch.float32)
    yield (
        attempt(meta.cpu),
        attempt(meta.tolist),
        torch.UntypedStorage(3, device="meta"),
    )


@case(warnings=False)
def bytes_of_buffers(torch):
    yield torch.ShortStorage.from_buffer(b"abcd", "big").tolist()
    yield torch.IntStorage.from_buffer(b"abcd", byte_order="little").tolist()
    yield torch.BoolStorage.from_buffer(b"\0\1\2", "big").tolist()
    yield attempt(torch.FloatStorage.from_buffer, b"abcd")
    yield attempt(torch.FloatStorage.from_buffer, b"abcde", "little")
    yield attempt(torch.FloatStorage.from_buffer, b"abcdefgh", "little", 4, 1)


@case(warnings=False)
def tensors_of_storages(torch):
    s = torch.FloatStorage([1, 2])
    yield torch.tensor(s), torch.tensor(s.untyped(), dtype=torch.float32)
    yield attempt(lambda: torch.tensor(s, dtype=torch.int32))
    yield attempt(torch.tensor([], dtype=torch.float64).set_, s)
    x, y = torch.tensor([]), torch.ones(2)
    yield x.new(y.storage()).data_ptr() == y.data_ptr(), x.new(size=(3, 4)).shape
    yield attempt(x.new, torch.IntTensor([1]))
    tensor, kept = copy.deepcopy([y, y.storage()])
    yield kept.data_ptr() == tensor.data_ptr() != y.data_ptr(), tensor.add_(1)
    yield kept.tolist(), attempt(type, "Sub", (torch.FloatTensor,), {})


@case(warnings=False)
def tensors_on_storages(torch):
    s = torch.arange(20, dtype=torch.uint8).untyped_storage()
    for kind in (torch.bfloat16, torch.int16, torch.float8_e5m2, torch.float64, None):
        x = torch.tensor(s, dtype=kind)
        yield x.dtype, x.shape, x.view(torch.uint8), x.data_ptr() == s.data_ptr()
    yield torch.as_tensor(s).dtype, torch.ones(2).new_tensor(s), torch.tensor([s])
    torch.tensor(s, dtype=torch.int32, requires_grad=False).fill_(1)
    x = torch.tensor(s, dtype=torch.float32, requires_grad=True)
    yield s.tolist(), x.requires_grad, x.is_leaf, torch.tensor(torch.UntypedStorage(2))
    typed = torch.ones(2, dtype=torch.bfloat16).storage()
    yield torch.tensor(typed, dtype=torch.bfloat16), attempt(torch.tensor, typed)
    yield torch.tensor(torch.FloatStorage([1, 2])), torch.asarray(typed.float())


@case
def large_unsigned(torch):
    yield torch.tensor(2**64 - 1, dtype=torch.uint64)
    yield torch.tensor([2**63 + 5], dtype=torch.uint64)
    yield attempt(lambda: torch.tensor(-1, dtype=torch.uint64))
    yield attempt(lambda: torch.tensor(2**64 - 1))


@case
def overlaps_and_maps(torch):
    one = torch.ones(1)
    shown = torch.ones(4).as_strided((2, 2), (1, 1))
    for t in (torch.ones(3), one.expand(3), one.expand(1), shown, torch.ones(3, 0)):
        yield torch._debug_has_internal_overlap(t)
    x = torch.arange(3.0)
    yield x.map2_(torch.ones(3), torch.ones(3), lambda a, b, c: a + b + c)
    yield attempt(torch._assert_async, torch.tensor(0)), torch._assert_async(one)


@case(warnings=False)
def bytes_indexed_and_refused(torch):
    s = torch.UntypedStorage([1, 2, 300, 4])
    yield s.tolist(), s.fill_(300).tolist(), s.resizable(), s.byte().tolist()
    wrong = (s.fill_, 1.5), (s.copy_, 3), (s.__getitem__, 9), (s.__getitem__, "a")
    yield [attempt(f, a) for f, a in wrong], attempt(lambda: s[::2])
    yield attempt(s.__setitem__, 9, 1), attempt(s.__setitem__, 0, "a")
    s[0:2] = 301
    yield s.tolist(), attempt(torch.UntypedStorage, 1, 2)
    yield attempt(torch.UntypedStorage, "a"), attempt(torch.UntypedStorage, [1.5])
    wrapped = {"wrap_storage": s, "dtype": torch.int32}
    typed = torch.TypedStorage
    yield attempt(typed, **(wrapped | {"dtype": 3}))
    yield attempt(typed, **(wrapped | {"wrap_storage": 3})), attempt(typed, 1.5)
    yield attempt(typed, **wrapped, device="cpu"), attempt(typed, typed(1))
    t = typed(**wrapped)
    yield t._size(), t._nbytes(), t._element_size(), t._untyped_storage is s


@case(warnings=False)
def without_memory(torch):
    t = torch.TypedStorage([1, 2], dtype=torch.float32, device="meta")
    u = torch.ones(2, device="meta").untyped_storage()
    for s in (t, u):
        yield s.data_ptr(), s.nbytes(), s.size(), s.type(), s.is_shared(), s.clone()
        yield s.get_device(), s.is_pinned(), attempt(s.cpu), attempt(s.tolist)
        yield attempt(lambda s=s: s[0]), attempt(s.share_memory_), attempt(s.pin_memory)
        yield attempt(s._share_fd_cpu_), attempt(s._share_filename_cpu_)
        yield s.is_cuda, s.device
    yield t.resize_(5), t.nbytes(), t.resize_(1), t.nbytes()
    yield attempt(torch.FloatStorage([1, 2]).copy_, t), t.double()
    yield attempt(lambda: torch.TypedStorage(device="meta")[0])
    yield attempt(lambda: t[:2])
    for name, dtype in torch.storage._storage_type_to_dtype_map().items():
        kinds = torch.storage._dtype_to_storage_type_map()
        if name.startswith(("Float", "Int", "Bool", "Complex")):
            yield name, dtype, kinds[dtype]


@case(warnings=False)
def conversions_of_bytes(torch):
    u = torch.UntypedStorage([1, 2, 255])
    for name in ("float", "int", "byte", "char", "bool", "half", "complex_double"):
        yield getattr(u, name)()
    yield attempt(u.byteswap, 1), u.tolist()


@case(warnings=False)
def equal_is_the_same_object(torch):
    x = torch.zeros(2)
    s = x.storage()
    yield s == s, s != s, x.storage() == s, s == 1, len({s, s, x.storage()})
    yield x.untyped_storage() == x.view(2, 1).untyped_storage()


@case(warnings=False)
def old_classes(torch):
    """(PyTorch's methods of typed storages warn, too, not `Tensor.storage` alone.)"""
    make, memory = torch.FloatStorage, torch.UntypedStorage(8)
    yield len(make(wrap_storage=memory)), make._dtype, torch.BoolStorage._dtype
    yield attempt(make, 3, 4), attempt(make, dtype=torch.float32), attempt(make, x=1)
    yield attempt(make, device="cpu"), attempt(make, wrap_storage=3)
    yield attempt(make, 3, wrap_storage=memory)
    yield attempt(memory.resize_, -1)
    yield attempt(torch.ones(2).untyped_storage().resize_, -1)


@case.over(read=[False, True])
def writes_that_no_version_tells_of(torch, read):
    def copied(t):
        ones = torch.ones(len(t.untyped_storage()) // 4)
        t.untyped_storage().copy_(ones.untyped_storage())

    for write in (
        lambda t: t.untyped_storage().fill_(0),
        lambda t: t.untyped_storage().__setitem__(3, 64),
        copied,
        lambda t: t.storage().fill_(2),
        lambda t: t.storage().__setitem__(0, 3),
        lambda t: t.detach().apply_(lambda a: a + 1),
        lambda t: t.detach().map_(t.detach(), lambda a, b: a + b),
    ):
        x = torch.arange(1.0, 4.0, requires_grad=True)
        y = x * 2
        view = y[1:]
        loss = (y * y).sum() + view.sin().sum()
        if read:
            y.tolist()
        write(y)
        yield y, view, y._version, view._version, type(view.grad_fn).__name__
        loss.backward()
        yield x.grad
        x = torch.ones(3, requires_grad=True)
        loss = (x * x).sum()
        write(x)
        loss.backward()
        yield x, x._version, x.grad
        plain = torch.ones(3)
        write(plain[1:])
        yield plain, plain._version


@case.lines("""
torch.FloatStorage([1.0])
torch.TypedStorage(2)
s.fill_(1).tolist()
s.is_cuda, s.device
s.untyped().nbytes()
len(s)
s[0]
s[1] = 3
s.copy_(torch.FloatStorage([2, 3])).tolist()
s.double().dtype
s.data_ptr() != 0
torch.FloatStorage.from_buffer(b'abcd', 'little').tolist()
str(s)
copy.copy(s).dtype
copy.deepcopy(s).dtype
s.dtype, torch.is_storage(s), s == s
file = io.BytesIO(); torch.save(s, file)
torch.ones(2).set_(s)
torch.ones(2).share_memory_().is_shared()
""")
def going(torch, line):
    """What says that typed storages will go, and at which line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        s = torch.FloatStorage([1, 2])
    torch.storage._reset_warn_typed_storage_removal()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        made = evaluate(torch, line, s=s, copy=copy, io=io)
    if not isinstance(made, torch.TypedStorage):
        yield made
    yield [(str(w.message), w.category.__name__) for w in said]


@case
def told_every_time(torch):
    set_always = torch.storage._set_always_warn_typed_storage_removal
    set_always(True)
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            s = torch.FloatStorage([1, 2])
            s.size(), s.size(), torch.FloatStorage(2, _internal=True)
            torch.TypedStorage(dtype=torch.half, _internal=True)
            s._resize_(3), s._setitem(slice(0, 3), 2), s._is_shared(), s._deepcopy({})
            s._pickle_storage_type(), s._share_memory_()
        yield [w.filename.endswith("test_typed_storage.py") for w in said]
    finally:
        set_always(False)


@case(warnings=False)
def bytes_as_numbers(torch):
    u = torch.ones(2).untyped_storage()
    yield u.float().tolist(), u.int().tolist(), u.byte().dtype, u.half().dtype
    b = u.byte()
    b[0] = 3
    yield b.tolist(), u.tolist()


@case(warnings=False).lines("""
torch.empty(0, dtype=torch.float64).set_(x.untyped_storage())
torch.empty(0, dtype=torch.float64).set_(torch.ones(3).untyped_storage())
i.zero_(), x, x._version
i[1:].fill_(0), x, i._version
x.mul_(2), i
torch.tensor([], dtype=torch.uint8).set_(x.untyped_storage(), 2, (2, 3), (3, 1))
i.data_ptr() == x.data_ptr(), i._is_view(), i.untyped_storage().nbytes()
i.add_(1).tolist(), x.untyped_storage()[0], x.sum(), i.sum()
y = x * 2; i.zero_(); y, x + 1, i + 1
s = torch.TypedStorage(wrap_storage=x.untyped_storage(), dtype=i.dtype); s[1] = 0; x
torch.IntTensor(x.untyped_storage())
copy.deepcopy([x, i])
""")
def memory_as_another_dtype(torch, line):
    """What was stored as one dtype is set as another: one memory."""
    x = torch.ones(4)
    i = torch.tensor([], dtype=torch.int32).set_(x.untyped_storage())
    yield evaluate(torch, line, x=x, i=i, copy=copy)
    i.copy_(torch.arange(4, dtype=torch.int32))
    yield i, x


@case.over("FloatStorage", "TypedStorage")
def what_storages_are_made_of(torch, name):
    options = {} if name == "FloatStorage" else {"dtype": torch.float32}
    odd = "text", b"ab", torch.tensor([]), 1.5, None, {1}, np.ones(2), np.int32(0)
    for given in odd:
        yield attempt(lambda g=given: getattr(torch, name)(g, **options).tolist())
    yield attempt(torch.cuda.FloatStorage._new_with_weak_ptr)
    yield attempt(torch.cuda.FloatStorage._new_shared_filename, 0, 0, 0)
