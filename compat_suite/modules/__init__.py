"""PyTorch's module database against torchshim: `python -m compat_suite modules`.

`database` reads the entries, `checks` runs one; the machinery is that of
`compat_suite.operators`.
"""
