"""Part of a partitioner of graphs: not supported, there are no such graphs."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "dp_knapsack dp_knapsack_sliding_hirschberg greedy_knapsack ilp_knapsack",
        "what is called is recorded, and compiled by XLA",
    )
)
