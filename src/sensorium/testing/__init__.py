"""Checkers and small parts for testing agents and environments."""
