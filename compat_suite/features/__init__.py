"""Features of autograd and samplers, told by the tests that compare them with PyTorch.

`autograd.toml` names features and their tests; `running` runs these, finds out which
random functions give PyTorch's numbers bit for bit, and keeps what came of it.
"""
