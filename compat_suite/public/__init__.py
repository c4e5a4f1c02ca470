"""The public names of PyTorch that torchshim has: `python -m compat_suite names`.

`names.txt` lists the documented names, written by `listing` where torch is installed;
`refused.txt` says what torchshim leaves out, with the reason; `coverage` compares.
"""
