"""What passes find parts of graphs with."""
