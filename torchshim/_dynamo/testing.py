"""Compilers that count what they are given: nothing is given to them here."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "AotEagerAndRecordGraphs CompileCounter CompileCounterWithBackend "
        "EagerAndRecordGraphs normalize_gm",
        "XLA compiles every recording, and there is no graph to hand to another "
        "compiler",
    )
)
