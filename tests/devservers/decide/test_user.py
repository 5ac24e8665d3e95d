"""What is done about a user, without a cluster."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs

from neorion.devservers.decide.tenant import SERVERS_COUNTED, ApiAddress, ClusterInfo, tenant_manifests
from neorion.devservers.decide.user import REPAIR_EVERY, UserDecision, UserObserved, decide_user
from neorion.devservers.model.kube_types import DevServerUser
from neorion.devservers.model.tenancy import USER_LABEL
from neorion.devservers.model.user import (
    DevServerUserSpec,
    DevServerUserStatus,
    FetchedKeys,
    UserConditionType,
    UserPhase,
)
from neorion.keel.kube import ObjectMeta
from neorion.keel.kube.core import Namespace, ResourceQuota
from neorion.keel.kube.core.core_v1 import ResourceQuotaStatus

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
KEY = "ssh-ed25519 AAAA ann@laptop"
SPACE = Namespace(meta=ObjectMeta(name="dev-ann", labels={USER_LABEL: "ann"}))
COUNTED = ResourceQuota(status=ResourceQuotaStatus(used={SERVERS_COUNTED: "0"}))


def a_user(*, suspended: bool = False) -> DevServerUser:
    spec = DevServerUserSpec(keys=(KEY,), suspended=suspended)
    return DevServerUser(meta=ObjectMeta(name="ann", generation=3), spec=spec)


def kinds(manifests: tuple[dict[str, object], ...]) -> list[object]:
    return [one["kind"] for one in manifests]


def test_a_new_user_gets_everything_and_is_pending_until_the_quota_is_counted():
    first = decide_user(UserObserved(a_user()), NOW)
    assert (first.status.phase, first.status.observed_generation) == (UserPhase.PENDING, 3)
    assert {"Namespace", "ServiceAccount", "Role", "RoleBinding"} <= set(kinds(first.objects))
    waiting = decide_user(UserObserved(a_user(), SPACE, ResourceQuota()), NOW)
    assert waiting.recount
    done = decide_user(UserObserved(a_user(), SPACE, COUNTED), NOW)
    assert (done.status.phase, done.recount, done.wake) == (UserPhase.PROVISIONED, False, REPAIR_EVERY)
    assert {one.type: one.status for one in done.status.conditions}[UserConditionType.READY] == "True"


def test_a_suspended_user_loses_every_right_and_keeps_what_they_have():
    decision = decide_user(UserObserved(a_user(suspended=True), SPACE, COUNTED), NOW)
    assert decision.status.phase is UserPhase.SUSPENDED
    assert kinds(decision.revoked) == ["ServiceAccount", "Role", "RoleBinding", "RoleBinding", "Pod"]
    applied = [(one["kind"], one["metadata"]["name"]) for one in decision.objects]
    # The operator may still stop the servers, and the limits stay.
    assert ("RoleBinding", "devservers-operator") in applied
    assert ("ServiceAccount", "user-ann") not in applied
    (keys,) = (one for one in decision.objects if one["kind"] == "ConfigMap")
    assert keys["data"] == {"authorized_keys": ""}


def test_consoles_reach_the_api_server_and_no_other_address_of_the_cluster():
    api = {ApiAddress("10.96.0.1", 443), ApiAddress("fd00::1", 6443)}
    policies = [
        one["spec"]
        for one in tenant_manifests("ann", DevServerUserSpec(), ClusterInfo(api=api))
        if one["kind"] == "NetworkPolicy" and one["metadata"]["name"] == "dev-user-console"
    ]
    assert policies == [
        {
            "podSelector": {"matchExpressions": [{"key": "devserver.io/console", "operator": "Exists"}]},
            "policyTypes": ["Egress"],
            "egress": [
                {
                    "to": [{"ipBlock": {"cidr": "10.96.0.1/32"}}],
                    "ports": [{"protocol": "TCP", "port": 443}],
                },
                {
                    "to": [{"ipBlock": {"cidr": "fd00::1/128"}}],
                    "ports": [{"protocol": "TCP", "port": 6443}],
                },
            ],
        }
    ]


def test_servers_accept_the_users_keys_and_certificates_in_the_users_name():
    decision = decide_user(
        UserObserved(a_user(), SPACE, COUNTED, cluster=ClusterInfo(authority="ssh-ed25519 CCCC")), NOW
    )
    (keys,) = (one for one in decision.objects if one["kind"] == "ConfigMap")
    assert keys["data"]["authorized_keys"].splitlines() == [
        'cert-authority,principals="ann" ssh-ed25519 CCCC',
        KEY,
    ]


@pytest.mark.parametrize(
    ("space", "refused", "reason"),
    [
        (Namespace(meta=ObjectMeta(name="dev-ann")), "", "NamespaceTaken"),
        (Namespace(meta=ObjectMeta(name="dev-ann", labels={USER_LABEL: "bob"})), "", "NamespaceTaken"),
        (structs.replace(SPACE, meta=structs.replace(SPACE.meta, deleted="now")), "", "NamespaceTerminating"),
        (SPACE, "The server said no.", "Refused"),
    ],
)
def test_nothing_is_written_where_the_namespace_is_not_the_users(space: Namespace, refused: str, reason: str):
    decision = decide_user(UserObserved(a_user(), space, refused=refused), NOW)
    assert (decision.objects, decision.revoked) == ((), ())
    assert decision.status.phase is UserPhase.FAILED
    assert decision.status.conditions[0].reason == reason
    assert decision.status.message


def test_a_condition_keeps_the_time_of_its_last_change():
    done = decide_user(UserObserved(a_user(), SPACE, COUNTED), NOW)
    again = structs.replace(a_user(), status=done.status)
    later = decide_user(UserObserved(again, SPACE, COUNTED), NOW + timedelta(hours=1))
    assert later.status == done.status


FETCHED = "ssh-ed25519 BBBB"


def at_github(fetched: FetchedKeys, before: DevServerUserStatus | None = None) -> UserObserved:
    spec = DevServerUserSpec(keys=(KEY,), github="ann-at-github")
    user = structs.replace(a_user(), spec=spec, status=before or DevServerUserStatus())
    return UserObserved(user, SPACE, COUNTED, fetched=fetched)


def lines(decision: UserDecision) -> list[str]:
    (keys,) = (one for one in decision.objects if one["kind"] == "ConfigMap")
    return keys["data"]["authorized_keys"].splitlines()


def test_keys_of_the_key_server_open_servers_beside_the_users_own():
    decision = decide_user(at_github(FetchedKeys((FETCHED, KEY))), NOW)
    assert (decision.status.fetched_keys, decision.status.fetched_from) == ((FETCHED, KEY), "ann-at-github")
    assert lines(decision) == [KEY, FETCHED]
    conditions = {one.type: one.status for one in decision.status.conditions}
    assert conditions[UserConditionType.KEYS] == "True"


@pytest.mark.parametrize(
    ("login", "fetched", "kept"),
    [
        ("ann-at-github", FetchedKeys(problem="It does not answer."), (FETCHED,)),
        ("somebody-else", FetchedKeys(problem="It does not answer."), ()),
        ("ann-at-github", FetchedKeys(), ()),
    ],
    ids=["outage", "outage after a change of the login", "keys taken away"],
)
def test_keys_from_before_stay_while_the_key_server_does_not_answer(
    login: str, fetched: FetchedKeys, kept: tuple[str, ...]
):
    before = DevServerUserStatus(fetched_keys=(FETCHED,), fetched_from=login)
    decision = decide_user(at_github(fetched, before), NOW)
    assert (decision.status.fetched_keys, lines(decision)) == (kept, [KEY, *kept])
    assert (decision.status.message, decision.status.phase) == (
        fetched.problem or None,
        UserPhase.PROVISIONED,
    )


def test_keys_of_a_login_that_is_named_no_longer_log_nobody_in():
    user = at_github(
        FetchedKeys(), DevServerUserStatus(fetched_keys=(FETCHED,), fetched_from="ann-at-github")
    ).user
    assert user.keys == (KEY, FETCHED)
    assert structs.replace(user, spec=DevServerUserSpec(keys=(KEY,))).keys == (KEY,)
    assert structs.replace(user, spec=DevServerUserSpec(keys=(KEY,), github="other")).keys == (KEY,)
