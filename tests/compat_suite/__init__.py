"""`compat_suite`: what it compares, and its report."""
