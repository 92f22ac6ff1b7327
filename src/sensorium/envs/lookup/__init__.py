"""A small environment: find facts in a table, calculate with them, answer."""
