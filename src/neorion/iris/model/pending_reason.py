"""Why a job waits or is refused, in one typed reason: the same in the command line, the RPC, the pages and the metrics."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from neorion.keel.base import Duration, Quantity


class PendingCode(StrEnum):
    """What stands in the way."""

    NO_WORKERS = "no_workers"
    CONSTRAINT = "constraint"
    GPU_VARIANT = "gpu_variant"
    GPU_SHORT = "gpu_short"
    CPU_SHORT = "cpu_short"
    MEMORY_SHORT = "memory_short"
    DISK_SHORT = "disk_short"
    GANG_KEY = "gang_key"
    GANG_SHORT = "gang_short"
    SETTLING = "settling"
    USER_CAP = "user_cap"
    USER_CPU = "user_cpu"
    USER_MEMORY = "user_memory"
    USER_GPUS = "user_gpus"
    PREEMPTING = "preempting"
    WORKER_DISK = "worker_disk"
    HOLDING = "holding"
    HELD = "held"
    BOOTING = "booting"
    NO_GROUP = "no_group"
    GROUP_DELAY = "group_delay"
    GROUP_MAX = "group_max"
    GROUP_QUOTA = "group_quota"
    GROUP_NO_QUOTA = "group_no_quota"
    GROUP_CAPACITY = "group_capacity"
    GROUP_BACKOFF = "group_backoff"


@dataclass(frozen=True, slots=True)
class PendingReason:
    """`want` is what one task (of a gang: the whole gang) asks for, `best` the most there is in one place.

    `subject` names the constraint, the variant, the user or the scale group that the code is about; `near` a word that
    may have been meant instead. `never` says that waiting cannot help: `best` is then the most there could ever be.
    """

    code: PendingCode
    want: int = 0
    best: int = 0
    subject: str = ""
    near: str = ""
    never: bool = False

    @property
    def sentence(self) -> str:
        table = _REFUSALS if self.never and self.code in _REFUSALS else _SENTENCES
        return self._say(table[self.code])

    @property
    def hint(self) -> str:
        if self.near:
            return f'did you mean "{self.near}"?'
        if self.never and self.code in _NEEDS_SOME and not self.best:
            return _REFUSAL_HINT_WITHOUT
        if self.never:
            return self._say(_REFUSAL_HINTS.get(self.code, ""))
        if self.code in _NEEDS_SOME and not self.best:
            return _HINT_WITHOUT
        return self._say(_HINTS[self.code])

    def _say(self, text: str) -> str:
        want, best = _AMOUNTS.get(self.code, (str, str))
        return text.format(want=want(self.want), best=best(self.best), subject=self.subject)


def wait_meanings() -> dict[str, str]:
    """What each code means, for people; ‹angle quotes› stand for what is filled in."""
    return {
        code.value: text.format(want="‹wanted›", best="‹there›", subject="‹subject›")
        for code, text in _SENTENCES.items()
    }


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"


def _cores(milli: int) -> str:
    return "1 core" if milli == 1000 else f"{milli / 1000:g} cores"


# What is wanted rounds up and what there is rounds down, so that two sizes that differ never read alike.
def _size_wanted(size: int) -> str:
    unit = _unit(size)
    return str(Quantity.of(-(-size // unit) * unit))


def _size_there(size: int) -> str:
    unit = _unit(size)
    return str(Quantity.of(size // unit * unit))


def _unit(size: int) -> int:
    return 2**20 if size >= 2**30 else 2**10 if size >= 2**20 else 1


def _tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count} tasks"


def _slices(count: int) -> str:
    return "1 slice" if count == 1 else f"{count} slices"


def _span(ns: int) -> str:
    return str(Duration(ns))


_AMOUNTS: dict[PendingCode, tuple[Callable[[int], str], Callable[[int], str]]] = {
    PendingCode.GPU_SHORT: (_gpus, _gpus),
    PendingCode.CPU_SHORT: (_cores, _cores),
    PendingCode.MEMORY_SHORT: (_size_wanted, _size_there),
    PendingCode.DISK_SHORT: (_size_wanted, _size_there),
    PendingCode.USER_CAP: (_tasks, _tasks),
    PendingCode.USER_CPU: (_cores, _cores),
    PendingCode.USER_MEMORY: (_size_there, _size_there),
    PendingCode.USER_GPUS: (_gpus, _gpus),
    PendingCode.SETTLING: (str, _tasks),
    PendingCode.PREEMPTING: (str, _tasks),
    PendingCode.BOOTING: (str, _slices),
    PendingCode.GROUP_DELAY: (_span, str),
    PendingCode.GROUP_BACKOFF: (str, _slices),
}

_SENTENCES = {
    PendingCode.NO_WORKERS: "There is no worker yet.",
    PendingCode.CONSTRAINT: "No worker meets {subject}.",
    PendingCode.GPU_VARIANT: "No worker has {subject} GPUs.",
    PendingCode.GPU_SHORT: "It needs {want} on one worker; the best has {best} free.",
    PendingCode.CPU_SHORT: "It needs {want} on one worker; the best has {best} free.",
    PendingCode.MEMORY_SHORT: "It needs {want} of memory on one worker; the best has {best} free.",
    PendingCode.DISK_SHORT: "It needs {want} of disk on one worker; the best has {best} free.",
    PendingCode.GANG_KEY: "Its tasks start together within one {subject}, and no worker has the attribute {subject}.",
    PendingCode.GANG_SHORT: "Its {want} tasks start together, and there is room for {best} of them within one {subject}.",
    PendingCode.SETTLING: "It waits for {best} of its last try to stop before it starts again.",
    PendingCode.USER_CAP: "{subject} runs {best}, and may run {want} at once.",
    PendingCode.USER_CPU: "{subject} has {best} in use, and may have {want} at once.",
    PendingCode.USER_MEMORY: "{subject} has {best} of memory in use, and may have {want} at once.",
    PendingCode.USER_GPUS: "{subject} has {best} in use, and may have {want} at once.",
    PendingCode.PREEMPTING: "It waits for {best} of others to stop and make room.",
    PendingCode.WORKER_DISK: "A task of it waits on {subject}, whose disk has no room for its files.",
    PendingCode.HOLDING: "It has waited long, so {subject} takes nothing else until there is room for it.",
    PendingCode.HELD: "The room there is, is kept for {subject}, which has waited longer.",
    PendingCode.BOOTING: "It waits for {best} of {subject} to come up.",
    PendingCode.NO_GROUP: "No scale group makes workers that would do.",
    PendingCode.GROUP_DELAY: "{subject} grows when it has waited {want}.",
    PendingCode.GROUP_MAX: "{subject} has {best} of the {want} slices it may have, and it needs more.",
    PendingCode.GROUP_QUOTA: "The quota of {subject} is used up.",
    PendingCode.GROUP_NO_QUOTA: "There is no quota for the machines of {subject}.",
    PendingCode.GROUP_CAPACITY: "There are no machines to be had for {subject}.",
    PendingCode.GROUP_BACKOFF: "{subject} failed to start {best} in a row; it is tried again after a pause.",
}

_SOONER = "it starts when {want} are free at once; asking for {best} could start it sooner"
_BY_ITSELF = "it goes on by itself"
_HINTS = {
    PendingCode.NO_WORKERS: "it starts when a worker joins; see what is on its way: iris slice list",
    PendingCode.CONSTRAINT: "drop the constraint, or see the workers' attributes with: iris worker list -o wide",
    PendingCode.GPU_VARIANT: "see what there is with: iris worker list",
    PendingCode.GPU_SHORT: _SOONER,
    PendingCode.CPU_SHORT: _SOONER,
    PendingCode.MEMORY_SHORT: _SOONER,
    PendingCode.DISK_SHORT: _SOONER,
    PendingCode.GANG_KEY: "see the workers' attributes with: iris worker list -o wide",
    PendingCode.GANG_SHORT: "{best} replicas instead of {want} would start now",
    PendingCode.SETTLING: _BY_ITSELF,
    PendingCode.PREEMPTING: _BY_ITSELF,
    PendingCode.WORKER_DISK: "free space there, or make its bundle and arguments smaller; after a while it is tried elsewhere",
    PendingCode.HOLDING: "it starts at the latest when all that runs there has ended",
    PendingCode.HELD: "it goes on when that one runs; what asks for less may find room elsewhere",
    PendingCode.BOOTING: "it starts by itself; see how far they are: iris slice list --group {subject}",
    PendingCode.NO_GROUP: "wait for a worker that would do to come free, or add a scale group that makes such workers",
    PendingCode.GROUP_DELAY: _BY_ITSELF + "; scale_up_delay of the cluster file says how soon",
    PendingCode.USER_CAP: "wait for a task of yours to end, or cancel one",
    PendingCode.USER_CPU: "wait for a task of yours to end, or cancel one",
    PendingCode.USER_MEMORY: "wait for a task of yours to end, or cancel one",
    PendingCode.USER_GPUS: "wait for a task of yours to end, or cancel one",
    PendingCode.GROUP_MAX: "raise max_slices of {subject}, or wait for a slice to come free",
    PendingCode.GROUP_QUOTA: "ask for more quota, or wait: it is tried again by itself",
    PendingCode.GROUP_NO_QUOTA: "ask the provider for quota of this instance type; waiting does not help",
    PendingCode.GROUP_CAPACITY: "it is tried again by itself",
    PendingCode.GROUP_BACKOFF: "see why with: iris slice list --group {subject}",
}
# Hints that tell to ask for what there is make no sense where there is nothing.
_NEEDS_SOME = (
    PendingCode.GPU_SHORT,
    PendingCode.CPU_SHORT,
    PendingCode.MEMORY_SHORT,
    PendingCode.DISK_SHORT,
    PendingCode.GANG_SHORT,
)
_HINT_WITHOUT = "it starts when something that runs has ended; see what does: iris job list"

_REFUSAL_HINT_WITHOUT = "this cluster has none; see what it has: iris worker list, iris slice list"
_REFUSALS = {
    PendingCode.NO_WORKERS: "There is no worker, and no scale group that could make one.",
    PendingCode.GPU_SHORT: "It needs {want} on one worker; the largest has {best}.",
    PendingCode.CPU_SHORT: "It needs {want} on one worker; the largest has {best}.",
    PendingCode.MEMORY_SHORT: "It needs {want} of memory on one worker; the largest has {best}.",
    PendingCode.DISK_SHORT: "It needs {want} of disk on one worker; the largest has {best}.",
    PendingCode.GANG_SHORT: "Its {want} tasks start together, and one {subject} never holds more than {best} of them.",
    PendingCode.USER_CAP: "Its tasks start together, and {subject} may run {want} at once.",
    PendingCode.USER_CPU: "It needs more cores at once than the {want} that {subject} may have.",
    PendingCode.USER_MEMORY: "It needs more memory at once than the {want} that {subject} may have.",
    PendingCode.USER_GPUS: "It needs more GPUs at once than the {want} that {subject} may have.",
}

_REFUSAL_HINTS = {
    PendingCode.NO_WORKERS: "start a worker, or add a scale group to the cluster's configuration",
    PendingCode.CONSTRAINT: "drop the constraint, or see the workers' attributes with: iris worker list -o wide",
    PendingCode.GPU_VARIANT: "see what there is with: iris worker list",
    PendingCode.GPU_SHORT: "ask for {best} or fewer per task, and for more tasks",
    PendingCode.CPU_SHORT: "ask for {best} or fewer",
    PendingCode.MEMORY_SHORT: "ask for {best} or less",
    PendingCode.DISK_SHORT: "ask for {best} or less",
    PendingCode.GANG_KEY: "see the workers' attributes with: iris worker list -o wide",
    PendingCode.GANG_SHORT: "ask for {best} at most, or for a gang that shares something wider",
    PendingCode.USER_CAP: "ask for fewer replicas, or for a higher limit",
    PendingCode.USER_CPU: "ask for fewer, or for a higher limit",
    PendingCode.USER_MEMORY: "ask for less, or for a higher limit",
    PendingCode.USER_GPUS: "ask for fewer, or for a higher limit",
}
