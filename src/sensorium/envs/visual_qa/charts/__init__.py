"""Charts: what is in them, how they are drawn, what is asked about them."""
