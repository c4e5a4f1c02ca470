"""Measurements of torchshim against PyTorch and hand-written JAX.

`python -m benchmarks` runs them; README.md says what they measure and how.
"""
