"""CUDA's code made HIP's: extensions in either cannot be loaded."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "GeneratedFileCleaner HipifyResult get_hip_file_path hipify preprocessor",
        "extensions written against PyTorch's libraries cannot be loaded",
    )
)
