"""The second layer for observations: parts become vectors and structured descriptions."""
