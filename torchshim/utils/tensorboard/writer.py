"""`SummaryWriter`: what a training loop tells TensorBoard.

https://docs.pytorch.org/docs/2.13/tensorboard.html
"""

# pyright: reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

import os
import socket
import time
from datetime import datetime
from typing import Any

from google.protobuf import text_format
from tensorboard.compat.proto import event_pb2
from tensorboard.compat.proto.event_pb2 import Event, SessionLog, TaggedRunMetadata
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from torchshim.utils.tensorboard._embedding import (
    get_embedding_info,
    make_mat,
    make_sprite,
    make_tsv,
    write_pbtxt,
)
from torchshim.utils.tensorboard._onnx_graph import load_onnx_graph
from torchshim.utils.tensorboard._pytorch_graph import graph
from torchshim.utils.tensorboard._utils import figure_to_image, make_np
from torchshim.utils.tensorboard.summary import (
    audio,
    custom_scalars,
    histogram,
    histogram_raw,
    hparams,
    image,
    image_boxes,
    mesh,
    pr_curve,
    pr_curve_raw,
    scalar,
    tensor_proto,
    text,
    video,
)

__all__ = ["FileWriter", "SummaryWriter"]


def _default_bins() -> list[float]:
    """Limits of histograms as TensorFlow has them: 10 % apart, on both sides of 0."""
    limits = []
    limit = 1e-12
    while limit < 1e20:
        limits.append(limit)
        limit *= 1.1
    return [*(-each for each in reversed(limits)), 0, *limits]


class FileWriter:
    """Writes messages to one event file, in a thread of its own."""

    def __init__(
        self,
        log_dir: Any,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        self.event_writer = EventFileWriter(
            str(log_dir), max_queue, flush_secs, filename_suffix
        )

    def get_logdir(self) -> str:
        """The folder of the file."""
        return self.event_writer.get_logdir()

    def add_event(self, event: Any, step: Any = None, walltime: Any = None) -> None:
        """Writes an `Event` message."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(
        self, summary: Any, global_step: Any = None, walltime: Any = None
    ) -> None:
        """Writes a `Summary` message."""
        self.add_event(event_pb2.Event(summary=summary), global_step, walltime)

    def add_graph(self, graph_profile: Any, walltime: Any = None) -> None:
        """Writes a `GraphDef` message and the `RunMetadata` that belongs to it."""
        definition, stats = graph_profile[0], graph_profile[1]
        self.add_event(Event(graph_def=definition.SerializeToString()), None, walltime)
        run = TaggedRunMetadata(tag="step1", run_metadata=stats.SerializeToString())
        self.add_event(Event(tagged_run_metadata=run), None, walltime)

    def add_onnx_graph(self, graph: Any, walltime: Any = None) -> None:
        """Writes a `GraphDef` message."""
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)

    def flush(self) -> None:
        """Sees to it that all is on the disk."""
        self.event_writer.flush()

    def close(self) -> None:
        """Ends the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Goes on writing, to a file of a new name."""
        self.event_writer.reopen()


class SummaryWriter:
    """Writes numbers, pictures, texts, graphs, ... of a run to files in `log_dir`.

    Without `log_dir` the folder is ``runs/`` with date, host name and `comment`.
    Follows ``torch.utils.tensorboard.SummaryWriter``.
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            moment = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{moment}_{socket.gethostname()}{comment}")
        self.log_dir = log_dir
        self.purge_step = purge_step
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._projector_config = ProjectorConfig()
        self._get_file_writer()
        self.default_bins = _default_bins()

    def _open(self, folder: Any) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def _writers(self) -> dict[str, FileWriter]:
        """The open files by their folders; the first is opened if need be."""
        if self.all_writers is None or self.file_writer is None:
            self.file_writer = self._open(self.log_dir)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                step = self.purge_step
                self.file_writer.add_event(
                    Event(step=step, file_version="brain.Event:2")
                )
                session = SessionLog(status=SessionLog.START)
                self.file_writer.add_event(Event(step=step, session_log=session))
                self.purge_step = None
        return self.all_writers

    def _get_file_writer(self) -> FileWriter:
        """The file of the run itself."""
        self._writers()
        assert self.file_writer is not None
        return self.file_writer

    def _add(self, summary: Any, global_step: Any = None, walltime: Any = None) -> None:
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def get_logdir(self) -> Any:
        """The folder of the event files."""
        return self.log_dir

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: Any = None,
    ) -> None:
        """Writes the settings of a run and what they led to."""
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        messages = hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = self._get_file_writer().get_logdir()
        folder = os.path.join(folder, run_name or str(time.time()))
        with SummaryWriter(log_dir=folder) as writer:
            for each in messages:
                writer._add(each, global_step)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: Any = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Writes one number of a series.

        `double_precision` is honoured with `new_style` only, as in PyTorch.
        """
        found = scalar(
            tag, scalar_value, new_style=new_style, double_precision=double_precision
        )
        self._add(found, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Writes a number of several series that are shown in one plot."""
        walltime = time.time() if walltime is None else walltime
        folder = self._get_file_writer().get_logdir()
        writers = self._writers()
        for tag, value in tag_scalar_dict.items():
            name = f"{folder}/{main_tag.replace('/', '_')}_{tag}"
            if name not in writers:
                writers[name] = self._open(name)
            writers[name].add_summary(scalar(main_tag, value), global_step, walltime)

    def add_tensor(
        self,
        tag: str,
        tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Writes a whole tensor."""
        self._add(tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: Any = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Writes how values are distributed."""
        if isinstance(bins, str) and bins == "tensorflow":
            bins = self.default_bins
        found = histogram(tag, values, bins, max_bins=max_bins)
        self._add(found, global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: Any,
        max: Any,
        num: Any,
        sum: Any,
        sum_squares: Any,
        bucket_limits: Any,
        bucket_counts: Any,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Writes a histogram that was counted elsewhere."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError(
                "len(bucket_limits) != len(bucket_counts), see the document."
            )
        found = histogram_raw(
            tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts
        )
        self._add(found, global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Writes a picture: bytes, or numbers from 0 to 1. Needs pillow."""
        found = image(tag, img_tensor, dataformats=dataformats)
        self._add(found, global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Writes a batch of pictures, side by side. Needs pillow."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Any,
        box_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: Any = None,
    ) -> None:
        """Writes a picture with boxes (N, 4): left, top, right, bottom. Needs pillow.

        Labels are left out where there is not one for each box.
        """
        if isinstance(labels, str):
            labels = [labels]
        if labels is not None and len(labels) != box_tensor.shape[0]:
            labels = None
        found = image_boxes(
            tag,
            img_tensor,
            box_tensor,
            rescale=rescale,
            dataformats=dataformats,
            labels=labels,
        )
        self._add(found, global_step, walltime)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Writes a figure of matplotlib, or a list of them."""
        order = "NCHW" if isinstance(figure, list) else "CHW"
        picture = figure_to_image(figure, close)
        self.add_image(tag, picture, global_step, walltime, dataformats=order)

    def add_video(
        self,
        tag: str,
        vid_tensor: Any,
        global_step: Any = None,
        fps: float = 4,
        walltime: float | None = None,
    ) -> None:
        """Writes videos (N, T, C, H, W): bytes, or numbers from 0 to 1.

        Needs moviepy; without it that is printed, and an empty entry written.
        """
        self._add(video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: Any = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Writes a sound of one channel: numbers from -1 to 1."""
        found = audio(tag, snd_tensor, sample_rate=sample_rate)
        self._add(found, global_step, walltime)

    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Writes a text."""
        self._add(text(tag, text_string), global_step, walltime)

    def add_onnx_graph(self, prototxt: Any) -> None:
        """Writes the graph of an ONNX file. Needs onnx."""
        self._get_file_writer().add_onnx_graph(load_onnx_graph(prototxt))

    def add_graph(
        self,
        model: Any,
        input_to_model: Any = None,
        verbose: bool = False,
        use_strict_trace: bool = True,
    ) -> None:
        """Writes the operators of one call of a module, which evaluates meanwhile.

        `input_to_model` is a tensor, or a tuple of arguments that are tensors or hold
        tensors; `verbose` prints the graph. RuntimeError where a result is none of
        tensors, or a dict, unless `use_strict_trace=False`.
        """
        found = graph(model, input_to_model, verbose, use_strict_trace)
        self._get_file_writer().add_graph(found)

    @staticmethod
    def _encode(rawstr: str) -> str:
        """A tag as the name of a folder."""
        for each in "%/\\":
            rawstr = rawstr.replace(each, f"%{ord(each):02x}")
        return rawstr

    def add_embedding(
        self,
        mat: Any,
        metadata: Any = None,
        label_img: Any = None,
        global_step: Any = None,
        tag: str = "default",
        metadata_header: Any = None,
    ) -> None:
        """Writes points (N, D) for the projector, with labels and pictures (N, ...)."""
        mat = make_np(mat)
        if global_step is None:
            global_step = 0
        subdir = f"{str(global_step).zfill(5)}/{self._encode(tag)}"
        folder = self._get_file_writer().get_logdir()
        save_path = os.path.join(folder, subdir)
        if os.path.isdir(save_path):
            print(
                "warning: Embedding dir exists, did you set global_step for "
                "add_embedding()?"
            )
        elif os.path.exists(save_path):
            raise NotADirectoryError(
                f"Path: `{save_path}` exists, but is a file. Cannot proceed."
            )
        else:
            os.makedirs(save_path)
        if metadata is not None:
            if mat.shape[0] != len(metadata):
                raise AssertionError("#labels should equal with #data points")
            make_tsv(metadata, save_path, metadata_header=metadata_header)
        if label_img is not None:
            if mat.shape[0] != label_img.shape[0]:
                raise AssertionError("#images should equal with #data points")
            make_sprite(label_img, save_path)
        if mat.ndim != 2:
            raise AssertionError(
                "mat should be 2D, where mat.size(0) is the number of data points"
            )
        make_mat(mat, save_path)
        info = get_embedding_info(metadata, label_img, subdir, global_step, tag)
        self._projector_config.embeddings.extend([info])
        write_pbtxt(folder, text_format.MessageToString(self._projector_config))

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: Any = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Writes precision and recall: labels 0 and 1, predictions from 0 to 1."""
        found = pr_curve(
            tag, make_np(labels), make_np(predictions), num_thresholds, weights
        )
        self._add(found, global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: Any = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Writes precision and recall that were counted elsewhere."""
        found = pr_curve_raw(
            tag,
            true_positive_counts,
            false_positive_counts,
            true_negative_counts,
            false_negative_counts,
            precision,
            recall,
            num_thresholds,
            weights,
        )
        self._add(found, global_step, walltime)

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Writes that some series are shown in one chart."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Writes that three series are shown as values, lower and upper limits."""
        if len(tags) != 3:
            raise AssertionError(f"Expected 3 tags, got {len(tags)}.")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_custom_scalars(self, layout: dict[str, dict[str, Any]]) -> None:
        """Writes a layout of charts: `{category: {title: ["Multiline", tags]}}`."""
        self._add(custom_scalars(layout))

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: Any = None,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Writes points (N, V, 3) with colours, or a mesh with triangles (N, F, 3)."""
        found = mesh(tag, vertices, colors, faces, config_dict)
        self._add(found, global_step, walltime)

    def flush(self) -> None:
        """Sees to it that all is on the disk."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Ends the files; what is added later goes to new ones."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self.close()
