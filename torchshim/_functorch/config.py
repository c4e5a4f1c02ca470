"""Settings of PyTorch's compiler of derivatives: nothing here reads them."""

functionalize_rng_ops = False
donated_buffer = False
activation_memory_budget = 1.0
