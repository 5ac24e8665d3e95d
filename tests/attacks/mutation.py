"""Mutates bytes by a seeded generator."""

from collections.abc import Sequence
from typing import Any

Rng = Any


def mutated(rng: Rng, body: bytes, tokens: Sequence[bytes]) -> bytes:
    """The same bytes after one to four changes: cut, overwritten, repeated, removed, or with a token inserted."""
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(0, len(body) + 1)
        to = min(len(body), at + rng.randrange(0, 16))
        match rng.randrange(0, 6):
            case 0:
                body = body[:at]
            case 1:
                body = body[:at] + bytes([rng.randrange(0, 256)]) + body[at + 1 :]
            case 2:
                body = body[:at] + rng.choice(tokens) + body[to:]
            case 3:
                body = body[:at] + body[at:to] * rng.randrange(2, 40) + body[to:]
            case 4:
                body = body[:at] + body[to:]
            case _:
                body = body[:at] + rng.choice(tokens) + body[at:]
    return body


def spliced(rng: Rng, corpus: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    """A mutated sample, sometimes with the end of another one behind it."""
    body = mutated(rng, rng.choice(corpus), tokens)
    if rng.random() < 0.1:
        other = rng.choice(corpus)
        body = body[: rng.randrange(0, len(body) + 1)] + other[rng.randrange(0, len(other) + 1) :]
    return body
