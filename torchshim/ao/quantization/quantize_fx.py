"""Quantization of graphs: refused, as `torch.ao.quantization` is."""

from torchshim._errors import refused
from torchshim.ao.quantization import _REASON

globals().update(
    refused(
        __name__,
        "convert_fx convert_to_reference_fx fuse_fx prepare_fx prepare_qat_fx",
        _REASON,
    )
)
