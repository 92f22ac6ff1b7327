"""Training loops, checkpoints and the writing side of the run directory."""
