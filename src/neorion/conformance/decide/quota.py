"""Judgements about quota: what an API server says when one object too many is made."""

from neorion.conformance.model import Assertion


def refused_by_quota(name: str, message: str) -> Assertion:
    """`message` is the API server's; empty if it took the object."""
    return Assertion(name, "exceeded quota" in message, message[:400] or "The API server took the object.")
