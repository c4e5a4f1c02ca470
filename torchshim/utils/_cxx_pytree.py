"""Trees by `optree`, whose classes of trees are not those of `torch.utils._pytree`."""

raise ImportError("torch.utils._cxx_pytree is not supported: use torch.utils._pytree")
