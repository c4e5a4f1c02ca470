"""What `torch.compile` may hand programs to: XLA compiles all of them here."""
