"""Helpers of graphs for compilers: not supported, what is called is recorded."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "fx_graph_cse get_outputs get_placeholders strip_overloads",
        "what is called is recorded, and compiled by XLA",
    )
)
