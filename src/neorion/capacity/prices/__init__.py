"""What machines cost: the clouds' published prices as of a day, and what an installation pays instead.

Only a table: what a price is good for is decided by whoever buys, and prices that a cloud tells by itself come from its adapter.
"""

from neorion.capacity.prices.price_book import PriceBook, listed_on

__all__ = ["PriceBook", "listed_on"]
