"""Pending reason: why a job waits or is refused, the same in the CLI, the RPC, the pages and the metrics."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from neorion.keel.base import Duration, Quantity


class PendingCode(StrEnum):
    """Kind of obstacle to the start of a job."""

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
    """Obstacle with amounts. `want` is the request of one task or of a whole gang, `best` the most that is available.

    `subject` names the constraint, the variant, the user or the scale group of the code. `near` is a similar word
    that may be meant. `never` means that waiting cannot help; `best` is then the most that can ever be available.
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
        return self._format(table[self.code])

    @property
    def hint(self) -> str:
        if self.near:
            return f'did you mean "{self.near}"?'
        if self.never and self.code in _NEEDS_SOME and not self.best:
            return _REFUSAL_HINT_WITHOUT
        if self.never:
            return self._format(_REFUSAL_HINTS.get(self.code, ""))
        if self.code in _NEEDS_SOME and not self.best:
            return _HINT_WITHOUT
        return self._format(_HINTS[self.code])

    def _format(self, text: str) -> str:
        want, best = _AMOUNTS.get(self.code, (str, str))
        return text.format(want=want(self.want), best=best(self.best), subject=self.subject)


def wait_meanings() -> dict[str, str]:
    """Readable meaning of each code. ‹Angle quotes› stand for values."""
    return {
        code.value: text.format(want="‹wanted›", best="‹there›", subject="‹subject›")
        for code, text in _SENTENCES.items()
    }


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"


def _cores(milli: int) -> str:
    return "1 core" if milli == 1000 else f"{milli / 1000:g} cores"


# Requests are rounded up and available amounts down, so that two different sizes never look equal.
def _size_requested(size: int) -> str:
    unit = _unit(size)
    return str(Quantity.of(-(-size // unit) * unit))


def _size_available(size: int) -> str:
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
    PendingCode.MEMORY_SHORT: (_size_requested, _size_available),
    PendingCode.DISK_SHORT: (_size_requested, _size_available),
    PendingCode.USER_CAP: (_tasks, _tasks),
    PendingCode.USER_CPU: (_cores, _cores),
    PendingCode.USER_MEMORY: (_size_available, _size_available),
    PendingCode.USER_GPUS: (_gpus, _gpus),
    PendingCode.SETTLING: (str, _tasks),
    PendingCode.PREEMPTING: (str, _tasks),
    PendingCode.BOOTING: (str, _slices),
    PendingCode.GROUP_DELAY: (_span, str),
    PendingCode.GROUP_BACKOFF: (str, _slices),
}

_SENTENCES = {
    PendingCode.NO_WORKERS: "No worker has joined yet.",
    PendingCode.CONSTRAINT: "No worker meets {subject}.",
    PendingCode.GPU_VARIANT: "No worker has {subject} GPUs.",
    PendingCode.GPU_SHORT: "It needs {want} on one worker; the best has {best} free.",
    PendingCode.CPU_SHORT: "It needs {want} on one worker; the best has {best} free.",
    PendingCode.MEMORY_SHORT: "It needs {want} of memory on one worker; the best has {best} free.",
    PendingCode.DISK_SHORT: "It needs {want} of disk on one worker; the best has {best} free.",
    PendingCode.GANG_KEY: "Its tasks start together within one {subject}, and no worker has the attribute {subject}.",
    PendingCode.GANG_SHORT: "Its {want} tasks start together, and there is room for {best} of them within one {subject}.",
    PendingCode.SETTLING: "It waits for {best} of its last attempt to stop before it starts again.",
    PendingCode.USER_CAP: "{subject} runs {best}; the limit is {want} at once.",
    PendingCode.USER_CPU: "{subject} uses {best}; the limit is {want} at once.",
    PendingCode.USER_MEMORY: "{subject} uses {best} of memory; the limit is {want} at once.",
    PendingCode.USER_GPUS: "{subject} uses {best}; the limit is {want} at once.",
    PendingCode.PREEMPTING: "It waits for {best} of other jobs to stop, which it preempts.",
    PendingCode.WORKER_DISK: "One of its tasks waits on {subject}, whose disk has no room for its files.",
    PendingCode.HOLDING: "It has waited long, so {subject} is reserved for it until there is room.",
    PendingCode.HELD: "The free room is reserved for {subject}, which has waited longer.",
    PendingCode.BOOTING: "It waits for {best} of {subject} to become ready.",
    PendingCode.NO_GROUP: "No scale group has suitable workers.",
    PendingCode.GROUP_DELAY: "{subject} is scaled up when the job has waited {want}.",
    PendingCode.GROUP_MAX: "{subject} has {best} of at most {want} slices, and the job needs more.",
    PendingCode.GROUP_QUOTA: "The quota of {subject} is used up.",
    PendingCode.GROUP_NO_QUOTA: "There is no quota for the machines of {subject}.",
    PendingCode.GROUP_CAPACITY: "The platform has no machines available for {subject}.",
    PendingCode.GROUP_BACKOFF: "{subject} failed to start {best} in a row; the next try follows after a pause.",
}

_SOONER = "Request {best} to start sooner, or wait until {want} are free at once."
_BY_ITSELF = "Wait: no action is needed."
_HINTS = {
    PendingCode.NO_WORKERS: "Wait for a worker to join, or see what is booting with: iris slice list.",
    PendingCode.CONSTRAINT: "Drop the constraint, or see the workers' attributes with: iris worker list -o wide.",
    PendingCode.GPU_VARIANT: "See the available GPUs with: iris worker list.",
    PendingCode.GPU_SHORT: _SOONER,
    PendingCode.CPU_SHORT: _SOONER,
    PendingCode.MEMORY_SHORT: _SOONER,
    PendingCode.DISK_SHORT: _SOONER,
    PendingCode.GANG_KEY: "See the workers' attributes with: iris worker list -o wide.",
    PendingCode.GANG_SHORT: "Request {best} replicas instead of {want} to start now.",
    PendingCode.SETTLING: _BY_ITSELF,
    PendingCode.PREEMPTING: _BY_ITSELF,
    PendingCode.WORKER_DISK: "Free disk space on the worker, or make the job's bundle and arguments smaller.",
    PendingCode.HOLDING: "Wait until the tasks on the reserved workers have ended.",
    PendingCode.HELD: "Wait until that job runs, or request less to use other free room.",
    PendingCode.BOOTING: "Wait, or see the progress with: iris slice list --group {subject}.",
    PendingCode.NO_GROUP: "Wait for a suitable worker to become free, or add a scale group with such workers.",
    PendingCode.GROUP_DELAY: "Wait, or lower scale_up_delay in the cluster file.",
    PendingCode.USER_CAP: "Wait for one of your tasks to end, or cancel one.",
    PendingCode.USER_CPU: "Wait for one of your tasks to end, or cancel one.",
    PendingCode.USER_MEMORY: "Wait for one of your tasks to end, or cancel one.",
    PendingCode.USER_GPUS: "Wait for one of your tasks to end, or cancel one.",
    PendingCode.GROUP_MAX: "Raise max_slices of {subject}, or wait for a slice to become free.",
    PendingCode.GROUP_QUOTA: "Request more quota, or wait for the next try.",
    PendingCode.GROUP_NO_QUOTA: "Request quota for this instance type from the provider: waiting does not help.",
    PendingCode.GROUP_CAPACITY: "Wait for the next try.",
    PendingCode.GROUP_BACKOFF: "See why with: iris slice list --group {subject}.",
}
# Codes whose hints name the available amount, which makes no sense if it is 0.
_NEEDS_SOME = (
    PendingCode.GPU_SHORT,
    PendingCode.CPU_SHORT,
    PendingCode.MEMORY_SHORT,
    PendingCode.DISK_SHORT,
    PendingCode.GANG_SHORT,
)
_HINT_WITHOUT = "Wait for a running task to end, or see what runs with: iris job list."

_REFUSAL_HINT_WITHOUT = "See what the cluster has with: iris worker list, iris slice list."
_REFUSALS = {
    PendingCode.NO_WORKERS: "The cluster has no worker, and no scale group that can create one.",
    PendingCode.GPU_SHORT: "It needs {want} on one worker; the largest has {best}.",
    PendingCode.CPU_SHORT: "It needs {want} on one worker; the largest has {best}.",
    PendingCode.MEMORY_SHORT: "It needs {want} of memory on one worker; the largest has {best}.",
    PendingCode.DISK_SHORT: "It needs {want} of disk on one worker; the largest has {best}.",
    PendingCode.GANG_SHORT: "Its {want} tasks start together, and one {subject} can never hold more than {best} of them.",
    PendingCode.USER_CAP: "Its tasks start together, and {subject} may run {want} at once.",
    PendingCode.USER_CPU: "It needs more cores at once than the {want} that {subject} may have.",
    PendingCode.USER_MEMORY: "It needs more memory at once than the {want} that {subject} may have.",
    PendingCode.USER_GPUS: "It needs more GPUs at once than the {want} that {subject} may have.",
}

_REFUSAL_HINTS = {
    PendingCode.NO_WORKERS: "Start a worker, or add a scale group to the cluster's configuration.",
    PendingCode.CONSTRAINT: "Drop the constraint, or see the workers' attributes with: iris worker list -o wide.",
    PendingCode.GPU_VARIANT: "See the available GPUs with: iris worker list.",
    PendingCode.GPU_SHORT: "Request {best} or fewer per task, and more tasks.",
    PendingCode.CPU_SHORT: "Request {best} or fewer.",
    PendingCode.MEMORY_SHORT: "Request {best} or less.",
    PendingCode.DISK_SHORT: "Request {best} or less.",
    PendingCode.GANG_KEY: "See the workers' attributes with: iris worker list -o wide.",
    PendingCode.GANG_SHORT: "Request at most {best}, or a gang that shares a wider attribute.",
    PendingCode.USER_CAP: "Request fewer replicas, or ask for a higher limit.",
    PendingCode.USER_CPU: "Request fewer, or ask for a higher limit.",
    PendingCode.USER_MEMORY: "Request less, or ask for a higher limit.",
    PendingCode.USER_GPUS: "Request fewer, or ask for a higher limit.",
}
