"""Graphs split in forward and backward: not supported, what is called is recorded."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "classify_nodes default_partition draw_graph get_default_op_list "
        "min_cut_rematerialization_partition",
        "what is called is recorded, and compiled by XLA",
    )
)
