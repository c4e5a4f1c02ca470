"""`torch.testing._internal.subclasses`: needs `__torch_dispatch__`."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "WrapperSubclass",
        "tensors with __torch_dispatch__ cannot be made",
    )
)
