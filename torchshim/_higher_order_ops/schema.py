"""Schemas of operators that take functions: there are none."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "HopArgumentInfoGen HopFunctionSchema HopSchemaGenerator",
        "operators that take functions are functions here",
    )
)
