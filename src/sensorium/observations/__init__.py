"""The first layer: a raw state becomes typed, timestamped parts."""
