"""Passes for any set of operators without writes in place."""
