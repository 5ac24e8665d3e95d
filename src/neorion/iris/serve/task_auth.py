"""Authentication of tasks: each is identified by its attempt, and may access its own job and the jobs below it."""

import hmac
from dataclasses import dataclass

from neorion.iris.model import AttemptId, JobName
from neorion.iris.model.tokens import parse_task_token
from neorion.iris.state import ClusterState
from neorion.keel.base import Denied
from neorion.keel.rpc import Principal, caller

TASK = "task"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCaller(Principal):
    """Principal of a live attempt. Its name is that of its user."""

    attempt: AttemptId
    job: JobName


class TaskTokenAuthenticator:
    """Authenticator of live attempts by their tokens."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster

    async def authenticate(self, token: str) -> Principal | None:
        parsed = parse_task_token(token)
        if parsed is None:
            return None
        attempt = self._cluster.attempts.get(AttemptId(parsed[0]))
        if attempt is None or not attempt.secret or not _same(attempt.secret, parsed[1]):
            return None
        name = self._cluster.jobs[attempt.job].spec.name
        return TaskCaller(name.user, frozenset({TASK}), attempt=attempt.id, job=name)


def current_task() -> TaskCaller | None:
    """Task that makes the current call, or None for other callers."""
    who = caller()
    return who if isinstance(who, TaskCaller) else None


def check_in_subtree(name: JobName) -> None:
    """Refuses a task access to jobs other than its own and those below it."""
    who = current_task()
    if who is not None and name != who.job and not name.startswith(f"{who.job}/"):
        raise Denied(
            "iris.not_kin",
            f"A task of {who.job} may not access {name}.",
            hint=f"Begin names in a task with {who.job}/, or omit the leading /.",
        )


def check_is_child(name: JobName) -> None:
    """Refuses a submission by a task that is not below its own job."""
    check_in_subtree(name)
    who = current_task()
    if who is not None and name == who.job:
        raise Denied(
            "iris.own_name",
            f"{name} is the job of this task.",
            hint="Give the new job another name.",
        )


def _same(known: str, shown: str) -> bool:
    return hmac.compare_digest(known.encode(), shown.encode("utf-8", "surrogatepass"))
