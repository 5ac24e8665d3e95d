"""Scale groups as configured in the cluster file. Their state is in views and records."""

from dataclasses import dataclass

from neorion.iris.model.resources import Resources
from neorion.keel.base import Duration


@dataclass(frozen=True, slots=True)
class ScaleGroup:
    """Slices of one shape, with a minimum and a maximum number.

    `shape` is one machine of a slice, `machines` the number per slice. A lower `priority` is used first. Demand that lasts
    `scale_up_delay` creates a slice; one idle for `scale_down_delay` is deleted, but not within
    `startup_grace`. A slice fails if its machines do not exist within `boot_timeout` and join within another `init_timeout`.
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
