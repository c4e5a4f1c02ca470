"""The parts of the database of operators that are not here, by name."""
