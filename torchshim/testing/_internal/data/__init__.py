"""Where PyTorch's test files keep data: none is shipped."""
