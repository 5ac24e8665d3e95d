"""Why a job waits, in one typed reason: the same in the command line, the RPC, the pages and the metrics."""

from dataclasses import dataclass
from enum import StrEnum


class WaitCode(StrEnum):
    """What stands in the way."""

    NO_WORKERS = "no_workers"
    CONSTRAINT = "constraint"
    GPU_VARIANT = "gpu_variant"
    GPU_SHORT = "gpu_short"
    CPU_SHORT = "cpu_short"
    MEMORY_SHORT = "memory_short"
    DISK_SHORT = "disk_short"
    GANG_SHORT = "gang_short"
    USER_CAP = "user_cap"
    PREEMPTING = "preempting"
    BOOTING = "booting"


@dataclass(frozen=True, slots=True)
class Reason:
    """`want` is what one task (of a gang: the whole gang) asks for, `best` the most that is free in one place.

    `subject` names the constraint, the variant, the user or the scale group that the code is about.
    """

    code: WaitCode
    want: int = 0
    best: int = 0
    subject: str = ""

    @property
    def sentence(self) -> str:
        return _SENTENCES[self.code].format(want=self.want, best=self.best, subject=self.subject)

    @property
    def hint(self) -> str:
        return _HINTS.get(self.code, "").format(want=self.want, best=self.best, subject=self.subject)


_SENTENCES = {
    WaitCode.NO_WORKERS: "There is no worker yet.",
    WaitCode.CONSTRAINT: "No worker meets {subject}.",
    WaitCode.GPU_VARIANT: "No worker has {subject} GPUs.",
    WaitCode.GPU_SHORT: "It needs {want} GPUs on one worker; the best has {best} free.",
    WaitCode.CPU_SHORT: "It needs {want} thousandths of a core on one worker; the best has {best} free.",
    WaitCode.MEMORY_SHORT: "It needs {want} bytes of memory on one worker; the best has {best} free.",
    WaitCode.DISK_SHORT: "It needs {want} bytes of disk on one worker; the best has {best} free.",
    WaitCode.GANG_SHORT: "Its {want} tasks start together, and there is room for {best} of them within one {subject}.",
    WaitCode.USER_CAP: "{subject} already runs {best} of {want} allowed tasks.",
    WaitCode.PREEMPTING: "{best} tasks of lower priority are being stopped to make room.",
    WaitCode.BOOTING: "{best} slices of {subject} are on their way.",
}

_HINTS = {
    WaitCode.CONSTRAINT: "drop the constraint, or see the workers' attributes with: iris worker list -o wide",
    WaitCode.GPU_VARIANT: "see what there is with: iris worker list",
    WaitCode.GPU_SHORT: "it starts when {want} are free at once; asking for {best} would start it now",
    WaitCode.GANG_SHORT: "{best} replicas instead of {want} would start now",
    WaitCode.USER_CAP: "wait for a task of yours to end, or cancel one",
}
