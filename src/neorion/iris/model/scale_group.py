"""Scale groups as the cluster's configuration sets them; what becomes of them is in views and records."""

from dataclasses import dataclass

from neorion.iris.model.resources import Resources
from neorion.keel.base import Duration


@dataclass(frozen=True, slots=True)
class ScaleGroup:
    """Slices of one shape, kept between a least and a most.

    `shape` is one machine of a slice, `machines` how many a slice has; a lower `priority` is asked first. Demand that lasts
    `scale_up_delay` brings a slice, one idle for `scale_down_delay` is given back, and a new one is left alone for
    `startup_grace`. Its machines exist within `boot_timeout` and join within another `init_timeout`, or it has failed.
    """

    name: str
    shape: Resources
    machines: int
    min_slices: int
    max_slices: int
    priority: int
    attributes: tuple[tuple[str, str], ...]
    scale_up_delay: Duration
    scale_down_delay: Duration
    startup_grace: Duration
    boot_timeout: Duration
    init_timeout: Duration
