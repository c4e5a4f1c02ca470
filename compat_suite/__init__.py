"""What torchshim has in common with PyTorch: `python -m compat_suite COMMAND`.

`scripts` compares whole programs; `ops`, `modules` and `optimizers` PyTorch's own
databases; `names` its documented names; `features` runs the tests of autograd's
features and the cases of random functions; `fuzz` makes random programs. `report` makes
a page of what the others kept in the repository (with `--keep`).
"""
