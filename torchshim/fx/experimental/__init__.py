"""Parts of `torch.fx` that PyTorch may still change."""
