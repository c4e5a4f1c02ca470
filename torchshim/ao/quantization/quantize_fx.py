"""Quantization of graphs: names that can be imported and refuse use."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "convert_fx convert_to_reference_fx fuse_fx prepare_fx prepare_qat_fx",
        "use prepare and convert of torch.ao.quantization on the module",
    )
)
