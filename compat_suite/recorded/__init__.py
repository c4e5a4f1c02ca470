"""Samples of PyTorch's operator database with its results, for runs without torch.

`recording` writes `samples.npz` (`python -m compat_suite ops --record`, with torch);
`packing` says what stands in it; `database` and `checks` are to the machinery of
`compat_suite.operators` what those of that package are.
"""
