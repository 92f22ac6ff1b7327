"""Training of language models that act: episodes are collected, compared within groups, and learnt from."""
