"""What PyTorch keeps of nested tensors: they are not here."""
