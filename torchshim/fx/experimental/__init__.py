"""Tracing functions: not supported."""
