"""Modules that run, weak keys, folders of memories, devices as modes, tracebacks."""

from __future__ import annotations

import copy
import gc
import importlib
import tempfile
import traceback

from tests.oracle import attempt, case


def _module(torch, name):
    return importlib.import_module(f"{torch.__name__}.{name}")


@case
def modules_that_run(torch):
    seen = []
    tracker = _module(torch, "utils.module_tracker").ModuleTracker()

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            seen.append((sorted(tracker.parents), tracker.is_bw))
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            seen.append((sorted(tracker.parents), tracker.is_bw))
            return grad * 2

    class Inner(torch.nn.Module):
        def forward(self, x):
            return Twice.apply(x)

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Sequential(Inner())
            self.b = Inner()

        def forward(self, x):
            return self.b(self.a(Twice.apply(x)))

    model = Outer()
    with tracker:
        for needs in (True, False):
            out = model(torch.ones(2, requires_grad=needs))
            yield list(seen), sorted(tracker.parents), tracker.is_bw
            seen.clear()
            if needs:
                out.sum().backward()
                yield list(seen), sorted(tracker.parents), tracker.is_bw
                seen.clear()
    model(torch.ones(2))
    yield seen


@case
def weak_keys(torch):
    weak = _module(torch, "utils.weak")
    a, b = torch.zeros(2), torch.zeros(2)
    d = weak.WeakTensorKeyDictionary()
    d[a], d[b] = 1, 2
    yield len(d), d[a], a in d, torch.zeros(2) in d, 3 in d, d.get(b)
    yield attempt(lambda: d[torch.zeros(2)]), list(d.values()), d.setdefault(a, 7)
    yield d == {a: 1, b: 2}, d == 3, len(d.copy()), len(copy.deepcopy(d)), d.pop(a)
    yield len(d | {a: 5}), len({a: 5} | d), len(d.keyrefs()), attempt(d.pop, a)
    d |= {a: 8}
    yield d[a], [k is b or k is a for k in d], d.popitem()[1], len(d)
    ref = weak.TensorWeakRef(b)
    yield ref() is b, attempt(weak.TensorWeakRef, 3)
    d[b] = 4
    del b
    gc.collect()
    yield len(d), ref(), weak.WeakIdRef(a) == weak.WeakIdRef(a)


@case
def folders_of_memories(torch):
    store = _module(torch, "utils._content_store")
    with tempfile.TemporaryDirectory() as folder:
        writer = store.ContentStoreWriter(folder, stable_hash=True)
        x = torch.arange(6.0)
        yield writer.write_storage(x.untyped_storage())
        yield writer.compute_tensor_metadata(x[2:].view(2, 2).t())[1:]
        writer.write_tensor("a", x)
        writer.write_tensor("sub/b", x[2:])
        writer.write_tensor("c", x.to(torch.complex64).conj())
        reader = store.ContentStoreReader(folder)
        a, b = reader.read_tensor("a"), reader.read_tensor("sub/b")
        yield a, b, a.data_ptr() == b.data_ptr() - 8, reader.read_tensor("c")
        missing = attempt(lambda: reader.read_tensor("d"))
        yield type(missing).__name__
        alone = store.ContentStoreReader(folder, cache=False)
        yield alone.read_tensor("a"), alone.read_tensor("a", device="meta").device


@case
def devices_as_modes(torch):
    device = _module(torch, "utils._device")

    @device.set_device("meta")
    def made():
        return [torch.ones(1), torch.tensor([1.0]), torch.zeros_like(x), torch.rand(2)]

    x = torch.ones(2)
    yield [t.device for t in made()], torch.ones(1).device

    @device.set_device("meta")
    def one_by_one():
        yield torch.ones(1).device
        yield torch.ones(1).device

    steps = one_by_one()
    yield next(steps), torch.ones(1).device, next(steps), torch.ones(1).device
    yield type(attempt(device.set_device("meta"), dict))
    with device.DeviceContext("meta"):
        yield torch.empty(2).device, torch.ones(1, device="cpu").device, x.device
    yield torch.ones in device._device_constructors()
    yield torch.sum in device._device_constructors()


@case
def where_a_program_is(torch):
    trace = _module(torch, "utils._traceback")

    def here():
        return trace.CapturedTraceback.extract()

    found = here()
    yield found.summary()[-1].name, found.format()[-1].splitlines()[1].strip()
    both = trace.CapturedTraceback.format_all([found, found])
    yield both[0] == both[1] == found.format()
    found.cleanup()
    yield len(found.summary()), found.format()
    try:
        raise ValueError
    except ValueError as error:
        text = trace.format_traceback_short(error.__traceback__)
    yield text.partition(" in ")[2]
    with trace.report_compile_source_on_error():
        pass
    source = "def f():\n    def g():\n        raise ValueError  # here\n    return g()"
    scope = {"__compile_source__": source}
    exec(source, scope)
    try:
        with trace.report_compile_source_on_error():
            scope["f"]()
    except ValueError as error:
        lines = traceback.format_tb(error.__traceback__)
    yield [line.splitlines()[1].strip() for line in lines[-2:]]


@case
def facts_of_tensors(torch):
    utils = _module(torch, "_utils")
    z = torch.ones(2, dtype=torch.complex64)
    yield utils.get_tensor_metadata(z), utils.get_tensor_metadata(z.conj())
    utils.set_tensor_metadata(z, {"conj": True})
    yield z.is_conj(), attempt(utils.set_tensor_metadata, z, 3)
    made = utils._rebuild_parameter_with_state(torch.ones(1), True, {}, {"a": 1})
    yield made, made.a, utils._element_size(torch.int16)
    yield utils.render_call(torch.sum, [torch.ones(100)], {"dim": 0})
    yield utils.render_call(len, [torch.ones(2), "a"], {})

    class Named:
        @utils.classproperty
        def name(cls):
            return cls.__name__

    yield Named.name, Named().name


@case
def named_results(torch):
    types = torch.return_types
    names = "max max_out sort_out linalg_lu linalg_lu_out lu_unpack svd_out topk_out"
    for name in f"{names} linalg_lstsq_out histogramdd linalg_slogdet_out".split():
        kind = getattr(types, name)
        yield kind.__name__, kind.__match_args__, kind.n_fields
    made = torch.max(torch.ones(2), 0, out=(torch.ones(()), torch.tensor(0)))
    yield type(made) is types.max_out
    lu = torch.linalg.lu(torch.eye(2))
    yield type(lu) is types.linalg_lu, types.sort([1, 2])
