"""What an operator is, how a recording is made, and how it is run."""
