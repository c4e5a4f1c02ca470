"""PyTorch's dispatcher in Python, which is not here."""
