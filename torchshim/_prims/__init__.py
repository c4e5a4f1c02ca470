"""PyTorch's primitive operators: JAX's take their place, and none has a name here."""
