"""Resource usage of an attempt."""

from msgspec import Struct


class Usage(Struct, frozen=True, omit_defaults=True):
    """Usage including child processes. 0 means unknown.

    While it runs: `cpu_milli`, thousandths of a core recently, `memory` and `processes`. After its end: `cpu_ms`, its
    total processor time. Always: `memory_peak`, the highest memory measured.
    """

    cpu_ms: int = 0
    cpu_milli: int = 0
    memory: int = 0
    memory_peak: int = 0
    processes: int = 0
