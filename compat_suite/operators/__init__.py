"""PyTorch's operator database against torchshim: `python -m compat_suite ops`.

`database` reads the entries; `translation` makes torchshim's functions and arguments of
PyTorch's; `comparison` says how results differ; `checks` runs one entry; `pool` runs
many, in processes (`worker`) that may crash or hang; `results` is what came of it.
"""
