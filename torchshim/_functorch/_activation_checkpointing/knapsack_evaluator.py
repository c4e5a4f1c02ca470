"""Part of a partitioner of graphs: not supported, there are no such graphs."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "KnapsackEvaluator",
        "what is called is recorded, and compiled by XLA",
    )
)
