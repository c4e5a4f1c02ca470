"""Modules that programs import and rarely use: PyTorch's helpers, the ONNX exporter."""

from __future__ import annotations

import pytest

from tests.oracle import case


@case
def flattened(torch):
    from importlib import import_module

    utils = import_module(f"{torch.__name__}._utils")
    tensors = [torch.arange(6.0).view(2, 3).t(), torch.ones(2)]
    flat = utils._flatten_dense_tensors(tensors)
    yield flat, utils._unflatten_dense_tensors(flat + 1, tensors)


def test_onnx_can_be_imported_and_refuses():
    import torchshim as torch

    assert torch.onnx.is_in_onnx_export() is False
    with pytest.raises(NotImplementedError, match="cannot be exported to ONNX"):
        torch.onnx.export(torch.nn.Linear(1, 1), (torch.ones(1),), "x.onnx")
