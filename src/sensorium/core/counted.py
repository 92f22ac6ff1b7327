"""Numbers of things in words: ``1 line``, ``1,200 lines``."""


def counted(number: int, noun: str) -> str:
    """A number and what it counts, e.g. ``1 row``, ``2 rows``, ``1,200 rows``.

    Args:
        number: How many.
        noun: One of them; its plural ends with ``s``.
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
