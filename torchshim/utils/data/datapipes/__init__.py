"""Data pipes: PyTorch gave them up; datasets and loaders take their place."""
