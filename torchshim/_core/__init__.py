"""What an operator is, how a recording is made, and how it is run."""

import logging

# A script that asks `logging` for everything means its own messages, not each program
# that JAX compiles. JAX_LOGGING_LEVEL, or the logger's own level, still show them.
if not (_jax := logging.getLogger("jax")).level:
    _jax.setLevel(logging.WARNING)
