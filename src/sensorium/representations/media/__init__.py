"""Pictures and sounds within their limits of size."""
