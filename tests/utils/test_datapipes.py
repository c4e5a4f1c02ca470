"""Data pipes, their graphs, and loaders that read them, against PyTorch."""

from __future__ import annotations

import random
from typing import Any

from tests.oracle import attempt, case


def iters(torch: Any) -> Any:
    return torch.utils.data.datapipes.iter


def double(x):
    return x * 2


def add(a, b):
    return a + b


def parity(x):
    return x % 2


def is_even(x):
    return x % 2 == 0


def half(x):
    return x // 2


@case
def steps(torch):
    it = iters(torch)
    ten = it.IterableWrapper(range(10))
    yield list(ten.map(double)), len(ten.map(double)), list(ten.filter(is_even))
    rows = it.IterableWrapper([(0, 1), (2, 3)])
    yield list(rows.map(add, input_col=[0, 1])), list(rows.map(double, input_col=0))
    yield list(rows.map(double, input_col=0, output_col=-1))
    yield list(rows.map(add, input_col=[0, 1], output_col=[1]))
    yield list(it.IterableWrapper([{"a": 1, "b": 2}]).map(double, input_col="b"))
    yield list(rows.filter(is_even, input_col=1)), list(ten.batch(3)), len(ten.batch(3))
    yield list(ten.batch(3, drop_last=True)), len(ten.batch(3, drop_last=True))
    batches = ten.batch(2).batch(2)
    yield list(batches.unbatch()), list(batches.unbatch(unbatch_level=-1))
    yield list(batches.unbatch(2)), attempt(list, ten.unbatch(1))
    yield list(ten.groupby(parity)), list(ten.groupby(half, group_size=2))
    yield list(ten.groupby(parity, buffer_size=4, group_size=3, keep_key=True))
    yield attempt(list, ten.groupby(half, buffer_size=3, group_size=3))
    yield list(ten.groupby(half, buffer_size=3, group_size=3, drop_remaining=True))
    yield list(ten.concat(ten.map(double))), list(ten.zip(ten.map(double)))
    yield list(ten.mux(it.IterableWrapper(range(20, 24)))), len(ten.mux(ten))
    yield list(it.Sampler(ten)), [x.tolist() for x in ten.batch(4).collate()]
    chunk = torch.utils.data.DataChunk([1, 2])
    yield chunk.as_str(" "), list(chunk.raw_iterator()), chunk.items
    yield str(ten), repr(ten.map(double)), "shuffle" in dir(ten)
    yield attempt(len, ten.filter(is_even)), attempt(lambda: ten.no_such_step)
    yield attempt(it.Mapper, ten, 3), attempt(ten.map, add), attempt(ten.batch, 0)
    yield attempt(ten.map, double, None, 1), attempt(it.Concater), attempt(it.Zipper, 3)


@case
def orders(torch):
    it = iters(torch)
    ten = it.IterableWrapper(range(10))
    torch.manual_seed(0)
    yield list(ten.shuffle()), list(ten.shuffle(buffer_size=3)), torch.rand(1)
    pipe = ten.shuffle().set_seed(5)
    yield list(pipe), list(pipe), list(pipe.set_shuffle(False))
    maps = torch.utils.data.datapipes.map
    keyed = maps.SequenceWrapper(list("abcd"))
    yield list(keyed.shuffle().set_seed(1)), list(keyed.shuffle(indices=[3, 1]))


@case
def several_readers(torch):
    it = iters(torch)
    ten = it.IterableWrapper(range(10))
    a, b = ten.fork(2)
    yield list(a), list(b), list(a), len(a)
    a, b = ten.fork(2, buffer_size=3)
    yield attempt(list, a)
    a, b = ten.fork(2)
    first, second = iter(a), iter(b)
    yield next(first), next(first), next(second), list(zip(first, second, strict=True))
    yield attempt(ten.fork, 0), ten.fork(1) is ten
    a, b = ten.demux(2, parity)
    yield list(a), list(b), attempt(len, a)
    a, b = ten.demux(2, parity, buffer_size=2)
    yield attempt(list, a)
    a, b = ten.demux(2, half)
    yield attempt(list, a)
    a, b = ten.fork(2)
    first, second = iter(a), iter(b)
    next(first), next(second)
    third = iter(a)
    yield next(third), attempt(next, second)


@case(warnings=False)
def begun_anew_while_one_reads(torch):
    it = iters(torch)
    ten = it.IterableWrapper(range(10))
    for a, b in (ten.fork(2), ten.demux(2, parity)):
        for _ in b:
            yield list(a)
            break
        yield list(b), list(a), list(b)
        reader = iter(b)
        yield next(reader), list(a), list(a)
        del reader
        yield list(b), list(b)


@case
def one_iterator_at_a_time(torch):
    it = iters(torch)
    ten = it.IterableWrapper(range(10))
    first = iter(ten)
    yield next(first)
    second = iter(ten)
    yield next(second), attempt(next, first)

    class Own(torch.utils.data.IterDataPipe):
        def __init__(self):
            self.reads = 0

        def reset(self):
            self.reads += 1

        def __iter__(self):
            yield from range(3)

    class Failing(Own):
        def __iter__(self):
            raise ValueError("no more")
            yield

    own = Own()
    yield list(own), list(own), own.reads, own._number_of_samples_yielded
    yield attempt(list, Failing())


@case
def by_key(torch):
    maps = torch.utils.data.datapipes.map
    keyed = maps.SequenceWrapper([1, 2, 3])
    yield [keyed.map(double)[i] for i in range(3)], len(keyed.map(double))
    yield (
        list(keyed.batch(2)[1]),
        len(keyed.batch(2)),
        attempt(lambda: keyed.batch(2)[2]),
    )
    both = keyed.concat(keyed.map(double))
    yield both[4], len(both), attempt(lambda: both[6])
    yield keyed.zip(keyed.map(double))[1], attempt(lambda: keyed.zip(keyed)[7])
    yield maps.SequenceWrapper({"a": 5})["a"], str(keyed), attempt(maps.Concater)
    loader = torch.utils.data.DataLoader(keyed.map(double), batch_size=2)
    yield [batch.tolist() for batch in loader]


@case
def names(torch):
    data = torch.utils.data

    @data.functional_datapipe("tests_own_step")
    class Tripled(data.IterDataPipe):
        def __init__(self, source):
            self.source = source

        def __iter__(self):
            for x in self.source:
                yield x * 3

    ten = iters(torch).IterableWrapper(range(3))
    try:
        yield list(ten.tests_own_step())
        yield attempt(data.functional_datapipe("tests_own_step"), Tripled)
    finally:
        del data.IterDataPipe.functions["tests_own_step"]

    random_step = data.non_deterministic(Tripled)
    yield list(random_step(ten)), attempt(data.non_deterministic, 3)
    with data.guaranteed_datapipes_determinism():
        yield attempt(random_step, ten)
    chosen = data.non_deterministic(lambda source: True)(Tripled)
    with data.guaranteed_datapipes_determinism():
        yield attempt(chosen, ten)


def shape_of(graph):
    return [(str(pipe), shape_of(inner)) for pipe, inner in graph.values()]


@case
def graphs(torch):
    data = torch.utils.data
    settings, graph = data.graph_settings, data.graph
    ten = iters(torch).IterableWrapper(range(10))
    pipe = ten.shuffle().map(double).zip(ten.filter(is_even)).batch(2)
    found = graph.traverse_dps(pipe)
    yield shape_of(found), [str(p) for p in settings.get_all_graph_pipes(found)]
    yield attempt(graph.traverse_dps, 3), shape_of(graph.traverse(ten, True))
    shards = [
        settings.apply_sharding(ten.map(double).sharding_filter(), 3, i)
        for i in range(3)
    ]
    yield [list(shard) for shard in shards], [len(shard) for shard in shards]
    twice = ten.sharding_filter().sharding_filter()
    yield attempt(settings.apply_sharding, twice, 2, 0)
    yield attempt(settings.apply_sharding, ten.sharding_filter(), 2, 2)
    pipe = ten.shuffle()
    settings.apply_random_seed(pipe, torch.Generator().manual_seed(3))
    yield list(pipe), list(settings.apply_shuffle_settings(pipe, False))
    yield str(settings.apply_shuffle_settings(ten, True))


@case
def loaders(torch):
    data = torch.utils.data
    it = iters(torch)
    for workers in (0, 2):
        torch.manual_seed(0)
        pipe = it.IterableWrapper(range(9)).shuffle().sharding_filter().map(double)
        how: dict[str, Any] = {"batch_size": 2, "num_workers": workers}
        loader = data.DataLoader(pipe, shuffle=True, **how)
        yield [b.tolist() for b in loader], [b.tolist() for b in loader], torch.rand(1)
        loader = data.DataLoader(pipe, shuffle=False, **how)
        yield [b.tolist() for b in loader]
    stay: dict[str, Any] = {"num_workers": 2, "persistent_workers": True}
    loader = data.DataLoader(pipe, shuffle=True, **stay)
    yield [b.tolist() for b in loader], [b.tolist() for b in loader]


@case
def files(torch):
    import os
    import tempfile

    it = iters(torch)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("b.txt", "a.txt", "c.md"):
            with open(os.path.join(folder, name), "w") as file:
                file.write(name * 2)
        listed = it.FileLister(folder, "*.txt")
        yield [os.path.basename(path) for path in listed], attempt(len, listed)
        opened = it.FileOpener(listed, mode="rb")
        yield [(os.path.basename(p), text) for p, text in it.StreamReader(opened, 6)]
        yield [stream.read() for _, stream in listed.open_files()]
        yield attempt(it.FileOpener, listed, "w")
    random.seed()


@case
def decoders(torch):
    import importlib
    import io

    from PIL import Image

    name = f"{torch.__name__}.utils.data.datapipes.utils.decoder"
    decoder = importlib.import_module(name)
    decode = decoder.Decoder(decoder.basichandlers)
    given = [("a.cls", b"3"), ("b.txt", b"hi"), ("none", b"z"), ("_k.txt", b"q")]
    given += [("_r/x.txt", b"1"), ("e.txt", b""), ("a.json", b"[1]"), ("b.id", b"x")]
    yield decode(given), decode(("/a/b.tar.gz", b"3")), decode(None)
    yield [attempt(decoder.basichandlers, e, b"3") for e in ("s", "o", "cl", "x.")]
    yield decoder.extension_extract_fn("/a/b.tar.gz"), decoder.extension_extract_fn("x")
    yield decoder.handle_extension("jpg jpeg", len)("a.JPG", b"12")
    yield attempt(decoder.ImageHandler, "zz"), decode(("s.txt", io.BytesIO(b"read")))
    decode.add_handler(len)
    yield decode.handlers[0] is len
    pixels = torch.arange(24, dtype=torch.uint8).reshape(2, 4, 3)
    image = Image.frombytes("RGB", (4, 2), bytes(pixels.flatten().tolist()))
    file = io.BytesIO()
    image.save(file, "png")
    yield list(decoder.imagespecs.items())
    for kind in decoder.imagespecs:
        if kind in ("torchl", "torchl8"):
            continue  # PyTorch fails
        found = decoder.imagehandler(kind)("png", file.getvalue())
        if kind.startswith("pil"):
            yield found.mode, found.size
        else:
            yield found.dtype, tuple(found.shape), found
    yield decoder.imagehandler("rgb")("txt", b"")
    routed = iters(torch).RoutedDecoder([("a.txt", b"x"), ("b.json", b"2")])
    yield list(routed), len(routed), list(routed)
    yield attempt(len, iters(torch).RoutedDecoder(iter([])))


@case
def snapshots(torch):
    import importlib

    name = f"{torch.__name__}.utils.data.datapipes.utils.snapshot"
    restore = importlib.import_module(name)._simple_graph_snapshot_restoration
    wrap = iters(torch).IterableWrapper
    for make in (
        lambda: wrap(range(8)),
        lambda: wrap(range(8)).map(double),
        lambda: wrap(range(8)).batch(3),
        lambda: wrap(range(8)).shuffle(),
    ):
        pipe = make()
        generator = torch.Generator()
        generator.manual_seed(3)
        restore(pipe, 2, generator)
        yield list(pipe), len(list(pipe))
        restored = make()
        yield attempt(restore, restored, 20, generator)
        restored = make()
        restore(restored, 3, generator)
        yield attempt(restore, restored, 1), list(restored)


class Rows:
    @classmethod
    def create_dataframe(cls, data, columns):
        return {"rows": data, "columns": columns}

    @classmethod
    def get_len(cls, df):
        return len(df["rows"])

    @classmethod
    def iterate(cls, df):
        yield from df["rows"]


@case
def data_frames_by_another_library(torch):
    wrapper = torch.utils.data.datapipes.dataframe.dataframe_wrapper
    before = wrapper.get_df_wrapper()
    yield before.__name__, wrapper.is_dataframe(3), wrapper.is_column([1])
    wrapper.set_df_wrapper(Rows)
    try:
        frame = wrapper.create_dataframe([(1, 2), (3, 4)], columns=["a", "b"])
        yield frame, wrapper.get_len(frame), list(wrapper.iterate(frame))
    finally:
        wrapper.set_df_wrapper(before)
