"""`SummaryWriter`: what a training loop tells TensorBoard.

https://docs.pytorch.org/docs/2.13/tensorboard.html
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import os
import socket
import time
from datetime import datetime
from typing import Any, NoReturn, Self

from tensorboard.compat.proto import event_pb2
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from torchshim.utils.tensorboard import summary as summaries

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """Writes summaries to one event file."""

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
    """Writes numbers, pictures and texts of a run to event files in `log_dir`.

    Without `log_dir` the folder is ``runs/`` with date, host name and `comment`.
    Graphs, videos, sounds, meshes, embeddings, curves and layouts are refused with
    NotImplementedError. Follows ``torch.utils.tensorboard.SummaryWriter``.
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
        self.log_dir = str(log_dir)
        self.purge_step = purge_step
        self._options = max_queue, flush_secs, filename_suffix
        self.all_writers: dict[str, FileWriter] | None = {}
        self.file_writer: FileWriter | None = None
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        if self.file_writer is None:
            self.file_writer = self._writer_for(self.log_dir)
            if self.purge_step is not None:
                step = self.purge_step
                started = Event(step=step, file_version="brain.Event:2")
                self.file_writer.add_event(started)
                session = SessionLog(status=SessionLog.START)
                self.file_writer.add_event(Event(step=step, session_log=session))
                self.purge_step = None
        return self.file_writer

    def _writer_for(self, folder: str) -> FileWriter:
        if self.all_writers is None:
            self.all_writers = {}
        if folder not in self.all_writers:
            self.all_writers[folder] = FileWriter(folder, *self._options)
        return self.all_writers[folder]

    def get_logdir(self) -> str:
        """The folder of the event files."""
        return self.log_dir

    def _add(self, summary: Any, global_step: Any, walltime: Any) -> None:
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: Any = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Writes one number of a series."""
        if double_precision:
            raise NotImplementedError("add_scalar(): double_precision is not supported")
        found = summaries.scalar(tag, scalar_value, new_style)
        self._add(found, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Writes a number of several series that are shown in one plot."""
        moment = time.time() if walltime is None else walltime
        for tag, value in tag_scalar_dict.items():
            name = f"{main_tag.replace('/', '_')}_{tag}"
            writer = self._writer_for(os.path.join(self.log_dir, name))
            writer.add_summary(summaries.scalar(main_tag, value), global_step, moment)

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
        found = summaries.histogram(tag, values, bins, max_bins)
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
        found = summaries.image(tag, img_tensor, dataformats)
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

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: Any = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Writes a figure of matplotlib, or a list of them."""
        import matplotlib.pyplot as plt
        import numpy as np
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        several = isinstance(figure, list)
        pictures = []
        for each in figure if several else [figure]:
            canvas = FigureCanvasAgg(each)
            canvas.draw()
            pictures.append(np.asarray(canvas.buffer_rgba())[..., :3])
            if close:
                plt.close(each)
        if several:
            self.add_images(
                tag, np.stack(pictures), global_step, walltime, dataformats="NHWC"
            )
        else:
            self.add_image(tag, pictures[0], global_step, walltime, dataformats="HWC")

    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Writes a text."""
        self._add(summaries.text(tag, text_string), global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: Any = None,
    ) -> None:
        """Writes the settings of a run and what they led to."""
        if hparam_domain_discrete:
            raise NotImplementedError(
                "add_hparams(): hparam_domain_discrete is not supported"
            )
        found = summaries.hparams(hparam_dict, metric_dict)
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        with SummaryWriter(log_dir=folder) as writer:
            for each in found:
                writer._get_file_writer().add_summary(each, global_step)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def _refused(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Not supported: NotImplementedError."""
        raise NotImplementedError(
            "SummaryWriter writes scalars, histograms, images, figures, texts and "
            "hparams; graphs, videos, audio, meshes, embeddings, precision-recall "
            "curves and custom layouts are not supported"
        )

    add_graph = add_onnx_graph = add_video = add_audio = add_embedding = _refused
    add_pr_curve = add_mesh = add_custom_scalars = add_tensor = _refused

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
