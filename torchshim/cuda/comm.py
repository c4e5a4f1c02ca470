"""Tensors moved between GPUs: one goes, so these refuse to be used."""

from torchshim._errors import refused

globals().update(
    refused(
        "torchshim.nn.parallel.comm",
        "broadcast broadcast_coalesced gather reduce_add reduce_add_coalesced scatter",
        "there is one device",
    )
)
