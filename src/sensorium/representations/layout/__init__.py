"""Parts laid out as text: segments that are kept or left out whole."""
