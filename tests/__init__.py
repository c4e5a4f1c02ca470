"""Tests of torchshim; `tests.oracle` says how results are compared with PyTorch."""
