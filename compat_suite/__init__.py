"""Whole programs under torchshim and under PyTorch: `python -m compat_suite`."""
