"""A person who may use development servers: the two halves of a DevServerUser."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, field

from neorion.devservers.model.field_types import Amount, DottedName, Name, Text
from neorion.devservers.model.spec import PublicKey
from neorion.keel.kube import KubeStruct
from neorion.keel.kube.validation import keyed, rules

# `dev-<name>` names a namespace, which has room for 63 letters.
USER_NAME_MAX = 59

_Amount = Annotated[
    Amount,
    rules(
        (
            "isQuantity(string(self)) && string(self).matches('^[0-9]')",
            "write an amount as Kubernetes does, such as 64 or 256Gi",
        )
    ),
]
# GitHub's own grammar of logins.
_Login = Annotated[str, Meta(max_length=39, pattern=r"^[A-Za-z0-9](-?[A-Za-z0-9])*$")]
# Of the keys that a key server has of one login, as many are read.
FETCHED_KEYS_MAX = 32
_Set = Meta(max_length=32, extra_json_schema={"x-kubernetes-list-type": "set"})


class UserQuota(KubeStruct, frozen=True, kw_only=True):
    """The most a user may have: servers, the sum of what all their pods request, and GPUs of each kind."""

    servers: Annotated[int, Meta(ge=0, le=10_000)] = 10
    cpu: _Amount = "64"
    memory: _Amount = "256Gi"
    gpus: Annotated[int, Meta(ge=0, le=100_000)] = 8
    storage: _Amount = "2Ti"


class UserLimits(KubeStruct, frozen=True, kw_only=True):
    """The most a user may have open at the SSH bastion at once."""

    connections: Annotated[int, Meta(ge=1, le=1000)] = 20
    channels: Annotated[int, Meta(ge=1, le=1000)] = 64


class DevServerUserSpec(KubeStruct, frozen=True, kw_only=True):
    """A user: keys, groups, quota and limits.

    The keys of `github` are fetched from the key server and log in beside `keys`. `clusterQueue` is the quota of the user's team, where the cluster has Kueue. `suspended` takes away every right and closes every session. The user's servers and volumes stay.
    """

    keys: Annotated[tuple[PublicKey, ...], _Set] = ()
    github: _Login | None = None
    groups: Annotated[tuple[Name, ...], _Set] = ()
    cluster_queue: DottedName | None = None
    quota: UserQuota = UserQuota()
    limits: UserLimits = UserLimits()
    suspended: bool = False


@dataclass(frozen=True, slots=True)
class FetchedKeys:
    """The public keys of a login. With a `problem` they are unknown, and those from before stay."""

    keys: tuple[str, ...] = ()
    problem: str = ""


class UserPhase(StrEnum):
    """Where a user is, in one word."""

    PENDING = "Pending"
    PROVISIONED = "Provisioned"
    SUSPENDED = "Suspended"
    FAILED = "Failed"


class UserConditionType(StrEnum):
    """The steps to a user who can work."""

    NAMESPACE = "NamespaceReady"
    QUOTA = "QuotaCounted"
    KEYS = "KeysFetched"
    QUEUE = "QueueReady"
    READY = "Ready"


class UserCondition(KubeStruct, frozen=True, kw_only=True):
    """One step, with a stable reason for programs and a sentence for people."""

    type: UserConditionType
    status: Annotated[str, Meta(pattern=r"^(True|False|Unknown)$")]
    reason: Annotated[str, Meta(max_length=1024)]
    message: Annotated[str, Meta(max_length=4096)] = ""
    last_transition_time: datetime | None = None


class DevServerUserStatus(KubeStruct, frozen=True, kw_only=True):
    """Observed state of a user."""

    phase: UserPhase | None = None
    namespace: Text | None = None
    message: Text | None = None
    fetched_keys: Annotated[tuple[PublicKey, ...], Meta(max_length=FETCHED_KEYS_MAX)] = ()
    fetched_from: Text | None = None
    observed_generation: int = 0
    conditions: Annotated[tuple[UserCondition, ...], Meta(max_length=16), keyed("type")] = field(default=())
