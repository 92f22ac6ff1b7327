"""Policies: a representation in, an action out; `embodied` are networks, `chat_agent` asks a model."""
