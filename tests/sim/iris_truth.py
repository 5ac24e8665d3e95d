"""What really happened to iris' jobs, seen from outside of every host, and the laws it must obey."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from neorion.iris.app.parts import ControllerParts
from neorion.iris.model import AttemptId, AttemptState, JobId, TaskState
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.ports import AttemptSpec
from neorion.iris.testing.memory_runtime import MemoryRuntime
from neorion.keel.base import Finding, Severity
from neorion.keel.sim import Host

Tale = tuple[Any, ...]
_UNSTARTED = (AttemptState.ASSIGNED, AttemptState.BUILDING, AttemptState.RUNNING)


@dataclass(slots=True)
class Machine:
    """One worker's two processes: the daemon, and the engine under which its tasks run."""

    daemon: Host
    engine: Host
    runtime: MemoryRuntime
    frozen: bool = False

    def running(self) -> list[AttemptSpec]:
        return self.runtime.running() if self.engine.up and not self.frozen else []


@dataclass(slots=True)
class Truth:
    """Facts as they become known. The first that breaks a law ends the run."""

    machines: list[Machine] = field(default_factory=list[Machine])
    accepted: dict[str, str] = field(default_factory=dict[str, str])
    told: dict[str, Tale] = field(default_factory=dict[str, Tale])
    begun: dict[str, None] = field(default_factory=dict[str, None])
    drained: dict[str, set[AttemptId]] = field(default_factory=dict[str, set[AttemptId]])
    findings: list[Finding] = field(default_factory=list[Finding])

    def violations(self) -> list[Finding]:
        return self.findings

    def break_law(self, code: str, subject: str, sentence: str) -> None:
        self.findings.append(Finding(Severity.ERROR, f"iris.{code}", subject, sentence))

    def accept(self, key: str, job: str) -> None:
        before = self.accepted.setdefault(key, job)
        if before != job:
            self.break_law("two_jobs", key, f"the same submission is {before} and {job}")

    def began(self, order: AttemptSpec) -> None:
        """An attempt's program starts: it must be the only one of its task, and it must never have run before."""
        if order.attempt in self.begun:
            self.break_law("ran_twice", order.attempt, "the same attempt began twice")
        self.begun[order.attempt] = None
        self.look_for_twins()
        job, index = _task_of(order)
        tale = self.told.get(job)
        if tale is not None and tale[0] == "succeeded":
            self.break_law("ran_after_success", order.attempt, f"task {index} of {job} had ended well")

    def look_for_twins(self) -> None:
        """Called whenever something begins to run; whatever ends cannot break this law."""
        alive: dict[tuple[str, str], str] = {}
        for machine in self.machines:
            for order in machine.running():
                other = alive.setdefault(_task_of(order), order.attempt)
                if other != order.attempt:
                    self.break_law("twins", order.attempt, f"{other} runs the same task")

    def hear(self, answer: pb.WaitResponse) -> None:
        """The client is told how a job ended: it is told the same ever after, and the values are its last attempts'."""
        job = answer.job or pb.Job()
        values = {blob.digest: blob.body for blob in answer.results}
        tale = (
            job.state,
            tuple((task.state, task.attempt, task.ending and task.ending.result) for task in answer.tasks),
        )
        before = self.told.setdefault(job.id, tale)
        if before != tale:
            self.break_law("changed_its_mind", job.id, f"told {before}, then {tale}")
        for task in answer.tasks:
            if task.state == "succeeded" and task.ending is not None:
                value = values.get(task.ending.result, b"")
                if value.decode() != task.attempt:
                    self.break_law("stale_value", task.attempt, f"its task has the value {value!r}")

    def inspect(self, parts: ControllerParts) -> None:
        """The controller's own book, whole."""
        cluster = parts.context.cluster
        for worker in cluster.workers:
            free = cluster.free(worker)
            if min(free.cpu_milli, free.memory, free.disk, free.gpus) < 0:
                self.break_law("overcommitted", worker, f"{free} is left")
        self._inspect_drained(parts)
        for job in cluster.jobs.values():
            if job.spec.placement.gang and not job.state.ended:
                counts = cluster.counts[job.id]
                pending = counts[TaskState.PENDING]
                if pending not in (0, job.spec.replicas):
                    self.break_law("half_a_gang", job.id, f"{pending} of {job.spec.replicas} wait")

    def _inspect_drained(self, parts: ControllerParts) -> None:
        """A worker that is being emptied is given nothing new."""
        cluster = parts.context.cluster
        for worker in cluster.workers.values():
            placed = set(cluster.attempts_on_worker[worker.id])
            if not worker.draining:
                self.drained.pop(worker.id, None)
            elif fresh := placed - self.drained.setdefault(worker.id, placed):
                self.break_law("not_emptied", worker.id, f"it was given {sorted(fresh)}")

    def read(self, task: pb.Task, text: bytes) -> None:
        wanted = f"{task.attempt} begins\n{task.attempt} ends\n"
        if text.decode() != wanted:
            self.break_law("log", task.attempt, f"its log is {text!r}")

    def remembered(self, parts: ControllerParts) -> None:
        """A controller has started: whatever was acknowledged or told is still so."""
        cluster = parts.context.cluster
        for key, job in self.accepted.items():
            if job not in cluster.jobs or cluster.keys.get(("ada", key)) != job:
                self.break_law("forgot_a_job", job, "it was acknowledged")
        for job, tale in self.told.items():
            if (state := cluster.jobs[JobId(job)].state) != tale[0]:
                self.break_law("forgot_an_end", job, f"told {tale[0]}, now {state}")


class LoggedErrors(logging.Handler):
    """Whatever a loop or a handler only logs breaks the run."""

    def __init__(self, tell: Callable[[str, str, str], None]) -> None:
        super().__init__(logging.ERROR)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self._tell("logged", record.name, f"{record.getMessage()}: {error!r}")


def _task_of(order: AttemptSpec) -> tuple[str, str]:
    variables = dict(order.variables)
    return variables["IRIS_JOB_ID"], variables["IRIS_TASK_INDEX"]
