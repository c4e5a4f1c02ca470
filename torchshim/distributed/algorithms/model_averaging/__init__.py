"""Parameters that processes average now and then."""
