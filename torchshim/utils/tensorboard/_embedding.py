"""The files that TensorBoard's projector reads: points, labels and their pictures."""

# pyright: reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo

from torchshim.utils.tensorboard._utils import make_grid, make_np, png


def make_tsv(
    metadata: Sequence[Any], save_path: str, metadata_header: Any = None
) -> None:
    """Writes the labels, one line each; of several columns with their header."""
    if metadata_header:
        if len(metadata_header) != len(metadata[0]):
            raise AssertionError(
                "len of header must be equal to the number of columns in metadata"
            )
        lines = ["\t".join(map(str, line)) for line in [metadata_header, *metadata]]
    else:
        lines = [str(each) for each in metadata]
    _write(save_path, "metadata.tsv", "\n".join(lines) + "\n")


def make_sprite(label_img: Any, save_path: str) -> None:
    """Writes the pictures (N, C, H, W) as one square one. Needs pillow."""
    columns = math.ceil(label_img.size(0) ** 0.5)
    grid = make_grid(make_np(label_img), ncols=columns).transpose(1, 2, 0)
    square = np.zeros((grid.shape[1], grid.shape[1], 3))
    square[: grid.shape[0]] = grid
    pixels = np.uint8((square * 255).clip(0, 255))
    Path(save_path, "sprite.png").write_bytes(png(np.asarray(pixels)))


def make_mat(matlist: np.ndarray, save_path: str) -> None:
    """Writes the points, one line each."""
    lines = ("\t".join(str(each.item()) for each in row) for row in matlist)
    _write(save_path, "tensors.tsv", "".join(line + "\n" for line in lines))


def get_embedding_info(
    metadata: Any, label_img: Any, subdir: str, global_step: Any, tag: str
) -> EmbeddingInfo:
    """What the projector is told of the files."""
    info = EmbeddingInfo()
    info.tensor_name = f"{tag}:{str(global_step).zfill(5)}"
    info.tensor_path = os.path.join(subdir, "tensors.tsv")
    if metadata is not None:
        info.metadata_path = os.path.join(subdir, "metadata.tsv")
    if label_img is not None:
        info.sprite.image_path = os.path.join(subdir, "sprite.png")
        info.sprite.single_image_dim.extend([label_img.size(3), label_img.size(2)])
    return info


def write_pbtxt(save_path: str, contents: str) -> None:
    """Writes the projector's settings."""
    _write(save_path, "projector_config.pbtxt", contents)


def _write(folder: str, name: str, text: str) -> None:
    Path(folder, name).write_bytes(text.encode())
