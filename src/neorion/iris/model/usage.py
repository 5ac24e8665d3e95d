"""What an attempt takes of its machine."""

from msgspec import Struct


class Usage(Struct, frozen=True, omit_defaults=True):
    """Its children are counted in; 0 is not known.

    While it runs: `cpu_milli`, thousandths of a core lately, `memory` and `processes`. When it has ended: `cpu_ms`, its
    processor time in all. Always: `memory_peak`, the most memory it was seen to have.
    """

    cpu_ms: int = 0
    cpu_milli: int = 0
    memory: int = 0
    memory_peak: int = 0
    processes: int = 0
