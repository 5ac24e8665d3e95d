"""The text of an id: 48 bits of time and 80 random bits in 26 lower-case characters (a ULID).

Sorts by creation time, fits a DNS label, and has no letters that look alike.
"""

from neorion.keel.base.units import Instant

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_LENGTH = 26
CHANCE_BITS = 80
# Two characters at a time: every request that brings no id is given one.
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
_SHIFTS = tuple(range(120, -10, -10))


def ulid(ms: int, chance: int) -> str:
    value = (ms & (2**48 - 1)) << CHANCE_BITS | (chance & (2**CHANCE_BITS - 1))
    return "".join([_PAIRS[value >> shift & 1023] for shift in _SHIFTS])


def born(text: str) -> Instant | None:
    """When an id was made, to the millisecond; None for a text that does not end in one."""
    unique = text[-_LENGTH:]
    if len(unique) != _LENGTH or unique.strip(_ALPHABET):
        return None
    value = 0
    for char in unique:
        value = value << 5 | _ALPHABET.index(char)
    return Instant((value >> CHANCE_BITS) * 1_000_000)
