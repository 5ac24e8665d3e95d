"""Spec of a job. It never changes after it is accepted."""

from dataclasses import dataclass, field
from enum import IntEnum

from msgspec import Struct

from neorion.iris.model.constraint import Constraint
from neorion.iris.model.ids import Digest, JobName
from neorion.iris.model.resources import Resources
from neorion.keel.base import Duration


class PriorityBand(IntEnum):
    """Priority band. A lower number goes first and may preempt higher ones; batch never preempts."""

    PRODUCTION = 1
    INTERACTIVE = 2
    BATCH = 3


class Command(Struct, frozen=True, tag="command"):
    """A program and its arguments."""

    argv: tuple[str, ...]


class FunctionCall(Struct, frozen=True, tag="call"):
    """A pickled Python function. Only the task itself unpickles it."""

    function: Digest


@dataclass(frozen=True, slots=True)
class TaskEnvironment:
    """Environment of a task: variables, files, Python packages, and commands to run before it."""

    variables: tuple[tuple[str, str], ...] = ()
    bundle: Digest = field(default=Digest(""))
    packages: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RetryBudget:
    """Number of retries of a task: after its own failures, and after the loss of its worker or a preemption."""

    failures: int = 0
    losses: int = 100


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Longest times that a task may wait and run; None means no limit."""

    wait: Duration | None = None
    run: Duration | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """Placement of tasks.

    `gang`: all tasks start together or not at all, on workers with one value of this attribute ("" means no
    gang). `spread`: tasks prefer workers with different values of this attribute.
    """

    constraints: tuple[Constraint, ...] = ()
    gang: str = ""
    spread: str = ""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """Complete spec of a submission."""

    name: JobName
    entry: Command | FunctionCall
    resources: Resources
    replicas: int = 1
    # One blob per task if each task has its own arguments.
    inputs: tuple[Digest, ...] = ()
    environment: TaskEnvironment = TaskEnvironment()
    placement: Placement = Placement()
    band: PriorityBand = PriorityBand.INTERACTIVE
    budget: RetryBudget = RetryBudget()
    limits: TimeLimits = TimeLimits()
    max_failed_tasks: int = 0
    ports: tuple[str, ...] = ()
    # Tasks of a warm job may run one after the other in the same process.
    warm: bool = False
