"""PyTorch's operator database against torchshim: `python -m compat_suite ops`.

`database` reads the entries; `translation` makes torchshim's functions and arguments of
PyTorch's; `values` and `forms` say what values are and how functions are called;
`comparison` says how results differ; `judging` makes calls and counts what fails;
`checks` runs one entry; `pool` runs many, in processes (`worker`) that may crash
or hang; `results` is what came of it. `compat_suite.modules` and
`compat_suite.optimizers` have a `database` and `checks` of their own, and use the rest.
"""
