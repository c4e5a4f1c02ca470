"""Event files, read back by TensorBoard where it is installed."""

from __future__ import annotations

import pytest

import torchshim as torch


def test_event_files(tmp_path):
    pytest.importorskip("tensorboard")
    pytest.importorskip("PIL")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from torchshim.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        for step in range(3):
            writer.add_scalar("loss", torch.tensor(1.0) / (step + 1), step)
        writer.add_histogram("weights", torch.arange(-2.0, 3.0), 0)
        writer.add_image("picture", torch.rand(3, 4, 5), 0)
        writer.add_images("pictures", torch.rand(9, 1, 4, 5), 0)
        writer.add_text("note", "**bold**", 0)
        writer.add_scalars("both", {"a": 1.0, "b": 2}, 0)
        writer.add_hparams({"lr": 0.1, "name": "x"}, {"score": 3.0}, run_name="r")
        with pytest.raises(NotImplementedError, match="graphs"):
            writer.add_graph(None)
        with pytest.raises(AssertionError, match="one element"):
            writer.add_scalar("loss", torch.ones(2))
    found = EventAccumulator(str(tmp_path)).Reload()
    values = [(e.step, e.value) for e in found.Scalars("loss")]
    assert [step for step, _ in values] == [0, 1, 2]
    assert [value for _, value in values] == pytest.approx([1, 1 / 2, 1 / 3])
    held = found.Histograms("weights")[0].histogram_value
    assert (held.min, held.max, held.num, held.sum) == (-2, 2, 5, 0)
    assert sum(held.bucket) == 5 and len(held.bucket) == len(held.bucket_limit)
    image = found.Images("picture")[0]
    assert (image.height, image.width) == (4, 5)
    assert (found.Images("pictures")[0].height, found.Images("pictures")[0].width) == (
        8,
        40,
    )
    text = found.Tensors("note/text_summary")[0].tensor_proto.string_val[0]
    assert text == b"**bold**"
    assert EventAccumulator(str(tmp_path / "both_a")).Reload().Scalars("both")
    assert EventAccumulator(str(tmp_path / "r")).Reload().Scalars("score")
