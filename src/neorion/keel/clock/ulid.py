"""The text behind an id: 48 bits of time and 80 of chance in 26 lower-case characters (a ULID).

Sorts by birth, fits a DNS label, and reads aloud without look-alikes.
"""

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
CHANCE_BITS = 80


def ulid(ms: int, chance: int) -> str:
    value = (ms & (2**48 - 1)) << CHANCE_BITS | (chance & (2**CHANCE_BITS - 1))
    return "".join(_ALPHABET[value >> shift & 31] for shift in range(125, -5, -5))
