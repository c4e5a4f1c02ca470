"""Types of results by schemas: not supported."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "AnnotateTypesWithSchema",
        "there are no schemas of TorchScript",
    )
)
