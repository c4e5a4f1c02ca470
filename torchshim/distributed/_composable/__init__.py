"""Functions that change modules in place."""
