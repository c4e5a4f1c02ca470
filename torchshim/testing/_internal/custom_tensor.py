"""`torch.testing._internal.custom_tensor`: needs `__torch_dispatch__`."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "ConstantExtraMetadataTensor CustomTensorPlainOut",
        "tensors with __torch_dispatch__ cannot be made",
    )
)
