"""What a partitioner of graphs keeps: not supported, there are no such graphs."""
