"""Event files for TensorBoard (``torch.utils.tensorboard``); needs that package.

Videos need moviepy, pictures pillow, figures matplotlib, ONNX files onnx.
"""

# pyright: reportMissingImports=false, reportMissingModuleSource=false

from tensorboard.summary.writer.record_writer import RecordWriter

from torchshim.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
