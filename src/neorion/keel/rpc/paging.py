"""The size of one page of a list, as every service understands it."""

from neorion.keel.base import Invalid


def page_size(limit: int, most: int) -> int:
    """The number of records in one response: the requested number, at most `most`. 0 requests the maximum."""
    if limit < 0:
        raise Invalid(
            "rpc.limit", f"{limit} is not a valid limit.", hint="Give a positive number, or leave it out."
        )
    return min(limit or most, most)
