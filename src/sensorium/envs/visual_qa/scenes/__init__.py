"""Scenes: rooms of the embodied environments, seen from within or from above."""
