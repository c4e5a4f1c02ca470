"""The CPU generator gives PyTorch's numbers for the same seed."""

import torch

torch.manual_seed(1234)
print(torch.rand(5), torch.rand(17).sum())
print(torch.randn(3, 4), torch.randn(50).sum())
print(torch.randint(0, 10, (8,)), torch.randperm(10))
print(torch.empty(4).uniform_(-1, 1), torch.empty(4).normal_(2, 3))
print(torch.rand(2, dtype=torch.float64), torch.randn(3, dtype=torch.float64))
state = torch.get_rng_state()
first = torch.rand(3)
torch.set_rng_state(state)
print(torch.equal(first, torch.rand(3)), state.shape, state.dtype)
generator = torch.Generator().manual_seed(5)
print(torch.rand(2, generator=generator), generator.initial_seed())
print(torch.initial_seed())
