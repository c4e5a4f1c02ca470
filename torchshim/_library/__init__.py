"""Operators that users register: their schemas, kernels and gradients."""
