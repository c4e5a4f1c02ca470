"""Passes over graphs: shapes, splitting, and what these are made of."""
