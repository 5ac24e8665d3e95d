"""The answer to a first login: a DevServerUser by policy, or a refusal with its reason."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from neorion.devservers.model.kube_types import DevServerUser, DevServerUserRequest
from neorion.devservers.model.login import (
    DevServerLoginPolicySpec,
    DevServerUserRequestStatus,
    RequestPhase,
)
from neorion.devservers.model.tenancy import CREATED_BY_LABEL
from neorion.keel.base import Duration

# The value of the label `devserver.io/created-by` of users that a first login made.
FIRST_LOGIN: Final = "first-login"
# Long enough for the bastion to read the answer.
KEEP_DECIDED: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class RequestObserved:
    """One request at one moment. `refusal` says why its evidence does not hold."""

    request: DevServerUserRequest
    policy: DevServerLoginPolicySpec
    user: DevServerUser | None = None
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class RequestDecision:
    """`user` is the DevServerUser to create. `delete` is for a request whose answer was long ago."""

    status: DevServerUserRequestStatus
    user: dict[str, Any] | None = None
    delete: bool = False
    wake: Duration | None = None


def is_allowed(request: DevServerUserRequest, policy: DevServerLoginPolicySpec) -> bool:
    """True where the policy admits evidence of this kind."""
    first = policy.first_login
    if request.spec.certificate:
        return first.certificates
    return bool(request.spec.id_token) and first.identity_provider and policy.identity_provider is not None


def decide_request(seen: RequestObserved, now: datetime) -> RequestDecision:
    spec, status = seen.request.spec, seen.request.status
    if status.phase is not None:
        left = (status.decided or now) + KEEP_DECIDED - now
        wake = Duration.of(seconds=max(0.0, left.total_seconds()))
        return RequestDecision(status, delete=left <= timedelta(0), wake=wake)
    if not is_allowed(seen.request, seen.policy):
        return _denied(now, "NotAllowed", "First logins of this kind are not allowed by the login policy.")
    if seen.refusal:
        return _denied(now, "NotProven", seen.refusal)
    if seen.user is not None and (seen.user.spec.suspended or seen.user.meta.deleted is not None):
        return _denied(now, "Suspended", f"The user {spec.user} is suspended or being removed.")
    approved = _answered(now, RequestPhase.APPROVED, "Approved", "")
    wake = Duration.of(seconds=KEEP_DECIDED.total_seconds())
    made = None if seen.user is not None else _user(spec.user, seen.policy)
    return RequestDecision(approved, made, wake=wake)


def _user(name: str, policy: DevServerLoginPolicySpec) -> dict[str, Any]:
    """The user has no keys: they log in as they did this time."""
    first = policy.first_login
    spec = {
        "groups": list(first.groups),
        "quota": msgspec.to_builtins(first.quota),
        "limits": msgspec.to_builtins(first.limits),
    }
    return {"metadata": {"name": name, "labels": {CREATED_BY_LABEL: FIRST_LOGIN}}, "spec": spec}


def _denied(now: datetime, reason: str, message: str) -> RequestDecision:
    wake = Duration.of(seconds=KEEP_DECIDED.total_seconds())
    return RequestDecision(_answered(now, RequestPhase.DENIED, reason, message), wake=wake)


def _answered(now: datetime, phase: RequestPhase, reason: str, message: str) -> DevServerUserRequestStatus:
    return DevServerUserRequestStatus(phase=phase, reason=reason, message=message, decided=now)
