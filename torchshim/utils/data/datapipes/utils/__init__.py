"""Functions that pipes share."""
