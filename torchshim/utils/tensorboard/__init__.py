"""Event files for TensorBoard (``torch.utils.tensorboard``); needs that package."""

from tensorboard.summary.writer.record_writer import (  # type: ignore[import-not-found]
    RecordWriter,
)

from torchshim.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
