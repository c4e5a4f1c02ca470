"""Devices of other makers: JAX's are the devices that there are."""

from torchshim._errors import refused

_privateuse1_backend_name = "privateuseone"

globals().update(
    refused(
        __name__,
        "generate_methods_for_privateuse1_backend rename_privateuse1_backend",
        "the devices are JAX's",
    )
)


def _name() -> str:
    """The name of such a device, which `torch._C` tells."""
    return _privateuse1_backend_name
