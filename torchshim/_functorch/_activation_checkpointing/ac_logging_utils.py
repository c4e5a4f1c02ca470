"""Part of a partitioner of graphs: not supported, there are no such graphs."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "create_activation_checkpointing_logging_structure_payload "
        "create_joint_graph_edges create_joint_graph_node_information "
        "create_structured_trace_for_min_cut_info",
        "what is called is recorded, and compiled by XLA",
    )
)
