"""PyTorch's operators as compositions of others: JAX has its own."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "core_aten_decompositions decomposition_table get_decompositions "
        "register_decomposition remove_decompositions",
        "operators are lowered by JAX",
    )
)
