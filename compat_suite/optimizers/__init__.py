"""PyTorch's optimizer database against torchshim: `python -m compat_suite optimizers`.

`database` reads the entries, `checks` runs one; the machinery is that of
`compat_suite.operators`.
"""
