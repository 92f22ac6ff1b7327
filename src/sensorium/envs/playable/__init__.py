"""Embodied tasks and any Gymnasium environment, played by a language model."""
