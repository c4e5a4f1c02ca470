"""Passes in order, one after another."""
