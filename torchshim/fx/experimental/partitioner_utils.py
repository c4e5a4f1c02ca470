"""What dividing a graph between devices needs: not supported."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "Device NodeLatency Partition PartitionMode PartitionerConfig "
        "get_comm_latency_between get_latency_of_one_partition "
        "get_latency_of_partitioned_graph get_partition_to_latency_mapping",
        "programs run on one device",
    )
)
