"""What is done about a user, without a cluster."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs

from neorion.devservers.decide.tenant import SERVERS_COUNTED, ApiAddress, ClusterInfo, tenant_manifests
from neorion.devservers.decide.user import (
    QUEUE_EVERY,
    REPAIR_EVERY,
    UserDecision,
    UserObserved,
    decide_user,
)
from neorion.devservers.model.kube_types import DevServerUser
from neorion.devservers.model.kueue import LocalQueue, LocalQueueSpec, LocalQueueStatus
from neorion.devservers.model.tenancy import USER_LABEL
from neorion.devservers.model.user import (
    DevServerUserSpec,
    DevServerUserStatus,
    FetchedKeys,
    UserConditionType,
    UserPhase,
)
from neorion.keel.kube import Condition, ObjectMeta
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


def in_team(team: str | None, queue: LocalQueue | None = None, *, kueue: bool = True) -> UserDecision:
    user = a_user()
    user = structs.replace(user, spec=structs.replace(user.spec, cluster_queue=team))
    return decide_user(UserObserved(user, SPACE, COUNTED, queue=queue, has_kueue=kueue), NOW)


def queue_of(team: str, *, active: bool, message: str = "") -> LocalQueue:
    told = Condition("Active", str(active), "Told", message)
    return LocalQueue(spec=LocalQueueSpec(cluster_queue=team), status=LocalQueueStatus(conditions=(told,)))


def queue_told(decision: UserDecision) -> tuple[str, str] | None:
    kind = UserConditionType.QUEUE
    return next(((one.status, one.message) for one in decision.status.conditions if one.type is kind), None)


def test_a_user_of_a_team_gets_a_queue_of_its_quota():
    fresh = in_team("vision")
    (queue,) = (one for one in fresh.objects if one["kind"] == "LocalQueue")
    assert queue["metadata"] == {"name": "team", "namespace": "dev-ann"}
    assert queue["spec"] == {"clusterQueue": "vision"}
    assert queue_told(fresh) == ("False", "The queue of vision is not ready: Kueue has not looked at it yet.")
    # Servers outside of the queue work meanwhile.
    assert (fresh.status.phase, fresh.wake) == (UserPhase.PROVISIONED, QUEUE_EVERY)
    ready = in_team("vision", queue_of("vision", active=True))
    assert (queue_told(ready), ready.revoked, ready.wake) == (("True", ""), (), REPAIR_EVERY)
    missing = in_team("vision", queue_of("vision", active=False, message="Can't find it."))
    assert queue_told(missing) == ("False", "The queue of vision is not ready: Can't find it.")


def test_a_user_of_another_team_or_of_none_loses_the_former_queue():
    moved = in_team("speech", queue_of("vision", active=True))
    assert [one["spec"]["clusterQueue"] for one in moved.revoked] == ["vision"]
    assert [one["spec"] for one in moved.objects if one["kind"] == "LocalQueue"] == [
        {"clusterQueue": "speech"}
    ]
    left = in_team(None, queue_of("vision", active=True))
    assert [one["kind"] for one in left.revoked] == ["LocalQueue"]
    assert "LocalQueue" not in kinds(left.objects)
    assert queue_told(left) is None


def test_without_kueue_a_team_is_told_and_everything_else_works():
    decision = in_team("vision", kueue=False)
    assert "LocalQueue" not in kinds(decision.objects)
    assert queue_told(decision) == ("False", "The cluster has no Kueue, and so no quota vision.")
    assert decision.status.phase is UserPhase.PROVISIONED


def test_who_logs_in_elsewhere_has_the_rights_of_the_user_of_that_name():
    manifests = tenant_manifests("ann", DevServerUserSpec())
    (binding,) = (
        one for one in manifests if (one["kind"], one["metadata"]["name"]) == ("RoleBinding", "dev-user")
    )
    names = [(one["kind"], one["name"]) for one in binding["subjects"]]
    assert names == [("ServiceAccount", "user-ann"), ("User", "devservers:ann")]
