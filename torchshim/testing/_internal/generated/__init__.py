"""What PyTorch generates for its tests."""
