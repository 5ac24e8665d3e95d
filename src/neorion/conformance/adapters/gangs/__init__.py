"""Gang schedulers that clusters have, one module for each. A check uses the first that is served.

Each makes gangs and deletes them. What is concluded about a gang is in `decide`.
"""

from typing import Final

from neorion.conformance.adapters.gangs.coscheduling import Coscheduling
from neorion.conformance.adapters.gangs.gang import Gang, GangScheduler
from neorion.conformance.adapters.gangs.jobset import JobSets
from neorion.conformance.adapters.gangs.kueue import Kueue
from neorion.conformance.adapters.gangs.native import NativePodGroups

GANG_SCHEDULERS: Final[tuple[GangScheduler, ...]] = (Kueue(), JobSets(), Coscheduling(), NativePodGroups())

__all__ = ["GANG_SCHEDULERS", "Gang", "GangScheduler"]
