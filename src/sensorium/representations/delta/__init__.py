"""What changed between two observations, without loss."""
