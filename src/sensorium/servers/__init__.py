"""Environments, models and agents as services over HTTP, in the protocol of NeMo Gym."""
