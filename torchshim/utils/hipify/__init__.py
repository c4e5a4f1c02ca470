"""CUDA's code made HIP's: extensions in either cannot be loaded."""
