"""`torch.func`, `torch.vmap` and `torch.utils._pytree`."""
