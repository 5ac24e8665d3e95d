"""The observations of a check, and the conclusions of a run."""

from msgspec import Struct

from neorion.conformance.model.verdict import Environment, Verdict


class Assertion(Struct, frozen=True):
    """One thing that must hold. `detail` says what was observed, also when it holds."""

    name: str
    held: bool
    detail: str = ""


class Control(Struct, frozen=True):
    """A negative control: an assertion in a situation where it must fail. `failure` is the failure that it produced."""

    name: str
    tripped: bool
    failure: str = ""


class Outcome(Struct, frozen=True):
    """The observations of one check. Exactly one of the reasons below is set where it could not conclude.

    `missing` names a part that is not installed, `absent` the proof that the condition of the requirement does not hold,
    `unknown` why the kind of device cannot be told.
    """

    environment: Environment | None = None
    assertions: tuple[Assertion, ...] = ()
    controls: tuple[Control, ...] = ()
    missing: str = ""
    absent: str = ""
    unknown: str = ""
    # What kept the API server from being observed all the time: neither a pass nor a failure follows.
    disturbed: str = ""
    # What this evidence does not show, for example because no hardware was used.
    limits: tuple[str, ...] = ()
    # The implementation that was tested, as in "kueue".
    subject: str = ""


class CheckPlan(Struct, frozen=True):
    """The plan of a check, shown before it runs."""

    creates: tuple[str, ...]
    needs: tuple[str, ...]
    seconds: int


class CheckResult(Struct, frozen=True):
    """The conclusion about one requirement."""

    requirement: str
    level: str
    verdict: Verdict
    reason: str
    outcome: Outcome
    seconds: float = 0.0
    # What could not be cleaned up; a finding of its own, never a verdict.
    left_behind: tuple[str, ...] = ()


class Run(Struct, frozen=True):
    """One run of the checks against one cluster."""

    id: str
    version: str
    started: str
    finished: str
    kubernetes: str
    server: str
    profile: str
    results: tuple[CheckResult, ...]
    # Artefact by name, with its SHA-256; the evidence itself is chained.
    artefacts: dict[str, str]
    evidence_head: str
    interrupted: bool = False
