"""Prices of machines: the clouds' published prices as of a day, and the prices of an account.

Only a table: decisions about prices belong to the buyer, and prices from a cloud's API come from its adapter.
"""

from neorion.capacity.prices.price_table import PriceTable, listed_on

__all__ = ["PriceTable", "listed_on"]
