"""Logins of people who are no DevServerUsers yet: the policy for them, and the request that a first login makes."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from neorion.devservers.model.field_types import Name, Text
from neorion.devservers.model.user import UserLimits, UserQuota
from neorion.keel.kube import KubeStruct
from neorion.keel.kube.validation import rules

# The one policy that counts.
POLICY_NAME = "default"
_EVIDENCE_MAX = 16_384
_Fixed = rules(("self == oldSelf", "a request is never changed: make another one"))
_Evidence = Annotated[str, Meta(max_length=_EVIDENCE_MAX), _Fixed]
_Claim = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_:/.-]+$")]
_Issuer = Annotated[
    str,
    Meta(max_length=512),
    rules(
        (
            r"self.matches('^(https://[A-Za-z0-9.-]+|http://(localhost|127\\.0\\.0\\.1))(:[0-9]+)?(/[A-Za-z0-9._~/-]*)?$')",
            "write the https address of the issuer, as in https://login.example.com",
        )
    ),
]


class IdentityProvider(KubeStruct, frozen=True, kw_only=True):
    """An OpenID Connect provider whose users log in to the bastion by its device flow.

    The user's name is `usernameClaim` without `usernameSuffix`, to the letter. With `groups`, a user needs one of them in `groupsClaim`.
    """

    issuer: _Issuer
    client_id: Annotated[str, Meta(min_length=1, max_length=256)]
    username_claim: _Claim = "preferred_username"
    username_suffix: Annotated[str, Meta(max_length=128)] = ""
    groups_claim: _Claim = "groups"
    groups: Annotated[tuple[Text, ...], Meta(max_length=32)] = ()
    scopes: Annotated[tuple[_Claim, ...], Meta(max_length=16)] = ("openid", "profile")


class FirstLogin(KubeStruct, frozen=True, kw_only=True):
    """Which first logins make a DevServerUser, and what such a user gets.

    `certificates` are those of the company's authority. `identityProvider` is the policy's.
    """

    certificates: bool = False
    identity_provider: bool = False
    groups: Annotated[
        tuple[Name, ...], Meta(max_length=32, extra_json_schema={"x-kubernetes-list-type": "set"})
    ] = ()
    quota: UserQuota = UserQuota()
    limits: UserLimits = UserLimits()


class DevServerLoginPolicySpec(KubeStruct, frozen=True, kw_only=True):
    """Ways to log in beside the keys of DevServerUsers. Without a policy there are no others."""

    identity_provider: IdentityProvider | None = None
    first_login: FirstLogin = FirstLogin()


class DevServerLoginPolicyStatus(KubeStruct, frozen=True, kw_only=True):
    """Empty: a policy holds from the moment it is there."""


class DevServerUserRequestSpec(KubeStruct, frozen=True, kw_only=True):
    """A first login, and its evidence: the certificate, or the token of the identity provider.

    The bastion makes it, and the user controller checks the evidence itself.
    """

    user: Annotated[
        str, Meta(min_length=1, max_length=59, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"), _Fixed
    ]
    certificate: _Evidence = ""
    id_token: _Evidence = ""


class RequestPhase(StrEnum):
    """Where a request is."""

    APPROVED = "Approved"
    DENIED = "Denied"


class DevServerUserRequestStatus(KubeStruct, frozen=True, kw_only=True):
    """The answer of the user controller."""

    phase: RequestPhase | None = None
    reason: Text | None = None
    message: Text | None = None
    decided: datetime | None = None
