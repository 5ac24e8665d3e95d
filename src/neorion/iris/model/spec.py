"""What a user asks for. A spec never changes once it is accepted."""

from dataclasses import dataclass, field
from enum import IntEnum

from msgspec import Struct

from neorion.iris.model.constraint import Constraint
from neorion.iris.model.ids import Digest, JobName
from neorion.iris.model.resources import Resources
from neorion.keel.base import Duration


class PriorityBand(IntEnum):
    """Who may push whom aside: a lower number goes first, and batch never pushes anybody."""

    PRODUCTION = 1
    INTERACTIVE = 2
    BATCH = 3


class Command(Struct, frozen=True, tag="command"):
    """A program and its arguments."""

    argv: tuple[str, ...]


class FunctionCall(Struct, frozen=True, tag="call"):
    """A pickled Python function. Only the task itself ever unpickles it."""

    function: Digest


@dataclass(frozen=True, slots=True)
class TaskEnvironment:
    """What a task finds around it: variables, files, Python packages, and commands run before it."""

    variables: tuple[tuple[str, str], ...] = ()
    bundle: Digest = field(default=Digest(""))
    packages: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RetryBudget:
    """How often a task may be tried again: after its own failures, and after losing its worker or its place."""

    failures: int = 0
    losses: int = 100


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """How long a task may wait for a place and how long it may run; no limit where there is none."""

    wait: Duration | None = None
    run: Duration | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """Where tasks may run.

    `gang`: all tasks start together or not at all, on workers that share one value of this attribute ("" asks for no
    gang). `spread`: tasks prefer workers with different values of this attribute.
    """

    constraints: tuple[Constraint, ...] = ()
    gang: str = ""
    spread: str = ""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """One submission, whole."""

    name: JobName
    entry: Command | FunctionCall
    resources: Resources
    replicas: int = 1
    # One blob per task where each task has arguments of its own.
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
