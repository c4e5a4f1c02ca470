"""Wrappers that keep less of a forward pass."""
