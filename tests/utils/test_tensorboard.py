"""Event files, compared message by message."""

from __future__ import annotations

import importlib
import inspect
import io
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from PIL import Image
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

from tests.oracle import attempt, case

PNG = b"\x89PNG"


def module(torch: Any, name: str = "") -> Any:
    return importlib.import_module(f"{torch.__name__}.utils.tensorboard{name}")


def messages(folder: Path) -> Iterator[str]:
    """What the event files in a folder hold, but for when and where it was written."""
    for path in sorted(folder.rglob("*tfevents*")):
        yield f"in {path.parent.relative_to(folder)}"
        for event in EventFileLoader(str(path)).Load():
            event.wall_time = 0
            event.ClearField("source_metadata")
            for value in event.summary.value:
                for i, data in enumerate(value.tensor.string_val):
                    if data.startswith(PNG):
                        pixels = np.asarray(Image.open(io.BytesIO(data)))
                        value.tensor.string_val[i] = str(pixels.tolist()).encode()
                plugin = value.metadata.plugin_data
                if plugin.plugin_name == "hparams":  # its bytes are in no order
                    plugin.content = str(
                        HParamsPluginData.FromString(plugin.content)
                    ).encode()
            yield str(event)


def written(torch: Any, fill: Callable[[Any], None], **options: Any) -> list[str]:
    """The messages that a writer leaves behind."""
    with tempfile.TemporaryDirectory() as folder:
        with module(torch).SummaryWriter(folder, **options) as writer:
            fill(writer)
        return list(messages(Path(folder)))


@case
def names_and_signatures(torch):
    spaces = module(torch), module(torch, ".summary"), module(torch, ".writer")
    for space in spaces:
        yield sorted(space.__all__)
    for cls in (spaces[0].SummaryWriter, spaces[0].FileWriter):
        for name, member in sorted(vars(cls).items()):
            if inspect.isfunction(member) and (name[0] != "_" or name == "__init__"):
                parameters = inspect.signature(member).parameters.values()
                yield name, [(p.name, p.default, str(p.kind)) for p in parameters]
    for name in sorted(spaces[1].__all__):
        parameters = inspect.signature(getattr(spaces[1], name)).parameters.values()
        yield name, [(p.name, p.default, str(p.kind)) for p in parameters]


@case
def scalars(torch):
    def fill(writer):
        writer.add_scalar("loss", torch.tensor(1.5), 3)
        writer.add_scalar("loss", np.float32(0.1), 4, new_style=True)
        writer.add_scalar("a", 0.1, new_style=True, double_precision=True)
        writer.add_scalar("a", 0.1, torch.tensor(7), double_precision=True)
        writer.add_scalar("h", torch.tensor([0.1], dtype=torch.bfloat16))
        writer.add_scalars("both/of", {"a": 1.0, "b": torch.tensor(2)}, 5)
        writer.add_text("note", "**bold** ü", 0)

    yield written(torch, fill, purge_step=2)
    with tempfile.TemporaryDirectory() as folder:
        writer = module(torch).SummaryWriter(folder, max_queue=3)
        yield attempt(writer.add_scalar, "loss", torch.ones(2))
        yield attempt(writer.add_scalar, "loss", "text")
        yield attempt(writer.add_scalar, "loss", [1.0])
        yield writer.max_queue, writer.flush_secs, writer.filename_suffix
        yield len(writer.default_bins), len(writer.all_writers)
        writer.close()
        yield writer.all_writers, writer.file_writer
        writer.close()


@case
def tensors(torch):
    def fill(writer):
        for name in ("float16", "bfloat16", "float32", "float64", "int8", "uint8"):
            writer.add_tensor(name, torch.arange(4, dtype=getattr(torch, name)))
        for name in ("int16", "int32", "int64", "bool"):
            writer.add_tensor(name, torch.tensor([[0, 1]]).to(getattr(torch, name)), 2)
        writer.add_tensor("complex", torch.tensor([1 + 2j]))
        writer.add_tensor("complex", torch.tensor(1 + 2j, dtype=torch.complex128))

    yield written(torch, fill)
    summary = module(torch, ".summary")
    yield summary.half_to_int(0.5), summary.int_to_half(1056964608)
    yield attempt(summary.tensor_proto, "t", torch.ones(2).to(torch.uint16))


@case
def histograms(torch):
    def fill(writer):
        writer.add_histogram("w", torch.arange(-2.0, 3.0), 0)
        writer.add_histogram("w", torch.arange(10), 1, bins=7, max_bins=3)
        writer.add_histogram("w", torch.arange(10), 1, bins=8, max_bins=4)
        writer.add_histogram("w", np.arange(4), 1, bins="auto")
        writer.add_histogram("w", np.ones(4), 1, bins=[0, 0.5, 1.5, 2])
        writer.add_histogram_raw("r", 0, 3, 4, 6, 14, [0, 1, 2], [1, 1, 2], 2)

    yield written(torch, fill)
    summary = module(torch, ".summary")
    yield attempt(summary.histogram, "w", torch.ones(0), 10)
    yield attempt(summary.histogram, "w", torch.ones(2), [5.0, 6.0])
    with tempfile.TemporaryDirectory() as folder:
        with module(torch).SummaryWriter(folder) as writer:
            yield attempt(writer.add_histogram_raw, "r", 0, 3, 4, 6, 14, [0], [1, 1], 2)


@case
def pictures(torch):
    def fill(writer):
        grid = torch.arange(60.0).reshape(3, 4, 5) / 32
        writer.add_image("float", grid, 0)
        writer.add_image("bytes", (grid * 128).to(torch.uint8).numpy(), 0)
        writer.add_image("rows", grid[0], dataformats="HW")
        writer.add_image("last", grid.permute(1, 2, 0), dataformats="HWC")
        writer.add_image("one", grid[:1])
        batch = torch.arange(9 * 4 * 5.0).reshape(9, 1, 4, 5) / 128
        writer.add_images("batch", batch, 1)
        writer.add_images("batch", batch.permute(0, 2, 3, 1), 1, dataformats="NHWC")
        boxes = torch.tensor([[1.0, 2, 12, 15], [3, 3, 9, 9]])
        large = torch.zeros(3, 20, 24)
        writer.add_image_with_boxes("boxes", large, boxes, 2)
        writer.add_image_with_boxes("boxes", large, boxes, 2, labels=["a", "b"])
        writer.add_image_with_boxes("boxes", large, boxes, rescale=2, labels="a")

    yield written(torch, fill)
    summary = module(torch, ".summary")
    yield attempt(summary.image, "x", torch.ones(2, 2))
    yield attempt(summary.image, "x", torch.ones(2, 2), dataformats="HH")
    yield attempt(summary.image, "x", torch.ones(1, 2, 2, 2))
    yield attempt(summary.image, "x", "blob")


@case
def sounds_and_videos(torch):
    def fill(writer):
        wave = torch.sin(torch.arange(0, 20) * 0.5)
        writer.add_audio("tone", wave, 1)
        writer.add_audio("tone", wave[None] * 3, 2, sample_rate=8000)
        writer.add_video("clip", torch.rand(3, 2, 3, 4, 4), 0, fps=2)  # no moviepy here

    yield written(torch, fill)
    summary = module(torch, ".summary")
    yield attempt(summary.audio, "tone", torch.ones(2, 3))
    yield attempt(summary.video, "clip", torch.rand(2, 3, 4, 4))


@case
def video_grid(torch):
    prepare = module(torch, "._utils")._prepare_video
    for count in (1, 2, 3, 4, 5):
        values = np.arange(count * 2 * 3 * 4 * 5.0).reshape(count, 2, 3, 4, 5)
        yield prepare(values)
    yield prepare(values.astype(np.uint8))


@case
def curves(torch):
    def fill(writer):
        torch.manual_seed(0)
        labels, guesses = torch.randint(2, (20,)), torch.rand(20)
        writer.add_pr_curve("pr", labels, guesses, 1)
        writer.add_pr_curve("pr", labels, guesses, 1, 5, weights=np.arange(20.0))
        counts = [np.arange(4.0)] * 6
        writer.add_pr_curve_raw("raw", *counts, global_step=2, num_thresholds=4)
        writer.add_pr_curve_raw("raw", *counts, global_step=2, num_thresholds=200)
        writer.add_custom_scalars({"c": {"x": ["Multiline", ["a", "b"]]}})
        writer.add_custom_scalars_multilinechart(["a", "b"], "cat", "title")
        writer.add_custom_scalars_marginchart(["a", "b", "c"])

    yield written(torch, fill)
    summary = module(torch, ".summary")
    yield attempt(summary.custom_scalars, {"c": {"x": ["Margin", ["a"]]}})
    with tempfile.TemporaryDirectory() as folder:
        with module(torch).SummaryWriter(folder) as writer:
            yield attempt(writer.add_custom_scalars_marginchart, ["a"])


@case
def meshes(torch):
    def fill(writer):
        points = torch.arange(18.0).reshape(2, 3, 3)
        writer.add_mesh("cloud", points, global_step=1)
        colours, faces = points.int(), torch.tensor([[[0, 1, 2]]])
        config = {"material": {"cls": "x"}, "a": 1}
        writer.add_mesh("mesh", points.tolist(), colours, faces, config, 2)

    yield written(torch, fill)
    yield attempt(module(torch, ".summary").mesh, "m", torch.ones(3), None, None, None)


@case
def settings(torch):
    given = {"lr": 0.1, "n": 3, "name": "x", "flag": True, "t": torch.tensor([2.0])}
    given["none"] = None
    domains = {"n": [1, 2, 3], "name": ["x", "y"], "flag": [True, False]}

    def fill(writer):
        writer.add_hparams(given, {"score": 3.0}, run_name="r", global_step=4)
        writer.add_hparams(given, {"score": 1.0}, domains, "s")

    yield written(torch, fill)
    hparams = module(torch, ".summary").hparams
    yield attempt(hparams, 1, {})
    yield attempt(hparams, {}, 1)
    yield attempt(hparams, {}, {}, 1)
    yield attempt(hparams, {"a": 1}, {}, {"b": [1]})
    yield attempt(hparams, {"a": 1}, {}, {"a": ["x"]})
    yield attempt(hparams, {"a": [1]}, {})
    with tempfile.TemporaryDirectory() as folder:
        with module(torch).SummaryWriter(folder) as writer:
            yield attempt(writer.add_hparams, [], {})


def show_files(folder: Path) -> Iterator[Any]:
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".png":
            yield str(path.relative_to(folder)), np.asarray(Image.open(path)).tolist()
        elif path.is_file() and "tfevents" not in path.name:
            yield str(path.relative_to(folder)), path.read_text()


@case
def embeddings(torch):
    points = torch.arange(6.0).reshape(3, 2)
    pictures = torch.arange(3 * 3 * 2 * 2.0).reshape(3, 3, 2, 2) / 32
    with tempfile.TemporaryDirectory() as folder:
        with module(torch).SummaryWriter(folder) as writer:
            writer.add_embedding(points)
            writer.add_embedding(points)
            writer.add_embedding(points, ["a", 2, "c"], pictures, 3, "t/a%\\g")
            lines = [["a", 1], ["b", 2], ["c", 3]]
            writer.add_embedding(points, lines, metadata_header=["l", "n"], tag="h")
            yield attempt(writer.add_embedding, points, ["a"], tag="e")
            yield attempt(writer.add_embedding, points, None, pictures[:1], tag="f")
            yield attempt(writer.add_embedding, points[0], tag="g")
            yield attempt(
                writer.add_embedding, points, lines, metadata_header=["l"], tag="k"
            )
        yield list(show_files(Path(folder)))


class Named(SimpleNamespace):
    """A message of ONNX, as far as it is looked at."""

    def ListFields(self):
        return [(None, self.name), (None, self.value)]


@case
def onnx(torch):
    parse = module(torch, "._onnx_graph").parse
    tensor = Named(elem_type=1, shape=Named(dim=[Named(dim_value=n) for n in (2, 3)]))
    value = Named(name="x", type=Named(tensor_type=tensor))
    node = Named(
        output=["y"], op_type="Relu", input=["x"], attribute=[Named(name="a", value=1)]
    )
    yield str(parse(Named(input=[value], output=[], node=[node])))
    with tempfile.TemporaryDirectory() as folder:
        with module(torch).SummaryWriter(folder) as writer:
            yield attempt(writer.add_onnx_graph, "missing.onnx")


# Graphs -------------------------------------------------------------------------------


def model(torch: Any) -> Any:
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(1, 4, 3, padding=1)
            self.bn = nn.BatchNorm2d(4)
            self.rest = nn.Sequential(nn.ReLU(), nn.Flatten(), nn.Linear(64, 5))
            self.scale = nn.Parameter(torch.ones(5))

        def forward(self, x, offset):
            found = self.rest(self.bn(self.conv(x)) + 1)
            found = self.rest[2]((found * self.scale)[:, :1].repeat(1, 64))
            with torch.no_grad():
                shift = torch.tanh(offset)
            return torch.softmax(found + shift, dim=1)

    return Net()


def shapes(node: Any) -> Any:
    found = node.attr["_output_shapes"].list.shape
    return [[dim.size for dim in shape.dim] for shape in found]


def operators(definition: Any) -> list[Any]:
    """The operators with their scopes, shapes, and the operands that are no constants.

    Values are numbered by TorchScript in PyTorch; here they are named by what made
    them.
    """
    plain = [n for n in definition.node if n.op != "prim::Constant"]
    names: dict[str, str] = {}
    for node in plain:
        scope = node.name.rpartition("/")[0]
        whole = node.op in ("IO Node",)
        names[node.name] = node.name if whole else f"{scope} {node.op}"
    shown = []
    for node in plain:
        if node.op not in ("prim::GetAttr", "prim::ListConstruct"):
            inputs = [names[each] for each in node.input if each in names]
            inputs = [each for each in inputs if "ListConstruct" not in each]
            shown.append((names[node.name], shapes(node), inputs))
    return shown


@case(warnings=False)
def graph(torch):
    build = module(torch, "._pytorch_graph").graph
    net = model(torch)
    given = torch.ones(2, 1, 4, 4), torch.ones(5)
    definition, stats = build(net, given)
    assert any("slice" in node.op for node in definition.node)
    # `[:, :1]` is two slices in TorchScript, `repeat` may be one of several names.
    yield [each for each in operators(definition) if "slice" not in str(each)]
    members = {n.name.rpartition("/")[0] for n in definition.node if "GetAttr" in n.op}
    yield sorted(members)
    yield str(stats), str(definition.versions), net.training
    yield {str(n.attr["attr"]) for n in definition.node if n.op == "IO Node"}

    def fill(writer):
        writer.add_graph(torch.nn.ReLU(), torch.ones(2, 3))

    found = written(torch, fill)
    yield len(found), found[-1], ["graph_def" in each for each in found]


@case(warnings=False)
def graphs_of_containers(torch):
    build = module(torch, "._pytorch_graph").graph

    class Holder(torch.nn.Module):
        def __init__(self, body):
            super().__init__()
            self.body = body

        def forward(self, a, b):
            return self.body(a, b)

    x = torch.ones(2, 3)

    def shown(body, args=(x, x), **options):
        return operators(build(Holder(body), args, **options)[0])

    yield shown(lambda a, b: (a + b, a.relu()))
    yield shown(lambda a, b: [a + b, a])
    yield shown(lambda a, b: {"u": a + b}, use_strict_trace=False)
    yield shown(lambda a, b: a)
    yield shown(lambda a, b: a["q"] + b[0], ({"q": x}, [x]))
    yield shown(lambda a, b: a[1] + b, ((x, x), x))
    yield shown(lambda a, b: a.max(1).values + a.mul(b).relu_().add_(1).sum(1))
    yield attempt(shown, lambda a, b: {"u": a + b})
    yield attempt(shown, lambda a, b: 3)
    yield attempt(shown, lambda a, b: None)
    yield attempt(shown, lambda a, b: (a, 3))
    yield attempt(shown, lambda a, b: a, (3,))
    yield attempt(shown, lambda a, b: a, None)
    yield attempt(build, lambda a: a, x)

    def fails(error):
        def body(a, b):
            raise error

        return body

    yield attempt(shown, fails(RuntimeError("oh")))
    yield attempt(shown, fails(ValueError("oh")))


def test_verbose(capsys):
    import torchshim as torch

    module(torch, "._pytorch_graph").graph(torch.nn.ReLU(), torch.ones(2), verbose=True)
    assert capsys.readouterr().out.splitlines() == [
        "graph:",
        "  %input/input : torch.float32[2] = IO Node()",
        "  %output/output.1 = IO Node(%ReLU/1)",
        "  %ReLU/1 : torch.float32[2] = aten::relu(%input/input)",
    ]
