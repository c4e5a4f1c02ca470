"""Element-wise kernels written in CUDA: they are not here."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "_create_jit_fn _create_multi_output_jit_fn",
        "write the function with operators; what is recorded is compiled as one kernel",
    )
)
