"""Pictures of graphs before and after a pass: not supported."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "GraphTransformObserver",
        "there are no pictures of graphs of torch.fx",
    )
)
