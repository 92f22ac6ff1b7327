"""A small environment: one question, one call of the right tool."""
