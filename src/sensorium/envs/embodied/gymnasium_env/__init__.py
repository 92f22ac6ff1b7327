"""The `gym` backend: any Gymnasium environment as worlds with senses."""
