"""PyTorch's operators in terms of its primitives, which are not here."""
