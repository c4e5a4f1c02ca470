"""Nested tensors with one ragged dimension: they are not here."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "NestedTensor ViewBufferFromNested ViewNestedFromBuffer buffer_from_jagged "
        "jagged_from_list jagged_from_tensor_and_lengths "
        "nested_view_from_values_offsets",
        "pad the sequences (torch.nn.utils.rnn.pad_sequence) or mask them",
    )
)
