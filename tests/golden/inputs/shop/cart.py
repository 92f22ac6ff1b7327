"""A shopping cart."""


class Cart:
    def __init__(self) -> None:
        self.items: dict[str, int] = {}

    def add(self, name: str, count: int = 1) -> None:
        self.items[name] = self.items.get(name, 0) + count

    def total(self, prices: dict[str, float]) -> float:
        return sum(prices[name] * count for name, count in self.items.items()
