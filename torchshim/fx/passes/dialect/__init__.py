"""Passes for graphs of one set of operators."""
