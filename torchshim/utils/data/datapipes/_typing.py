"""Types of pipes at run time, which are not here."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "_DataPipeMeta _DataPipeType issubinstance issubtype reinforce_type",
        "pipes have no types at run time here",
    )
)
