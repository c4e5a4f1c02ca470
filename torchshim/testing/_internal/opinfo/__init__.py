"""`torch.testing._internal.opinfo`: what is known of operators for tests."""
