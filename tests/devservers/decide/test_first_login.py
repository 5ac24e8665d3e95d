"""The answers to first logins, without a cluster."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs

from neorion.devservers.decide.first_login import KEEP_DECIDED, RequestObserved, decide_request
from neorion.devservers.model.kube_types import DevServerUser, DevServerUserRequest
from neorion.devservers.model.login import (
    DevServerLoginPolicySpec,
    DevServerUserRequestSpec,
    FirstLogin,
    RequestPhase,
)
from neorion.devservers.model.user import DevServerUserSpec, UserQuota
from neorion.keel.kube import ObjectMeta

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
CERTIFICATES = DevServerLoginPolicySpec(
    first_login=FirstLogin(certificates=True, groups=("research",), quota=UserQuota(servers=2))
)
REQUEST = DevServerUserRequest(
    meta=ObjectMeta(name="ssh-1"), spec=DevServerUserRequestSpec(user="ann", certificate="ssh-ed25519 AAAA")
)


def test_an_allowed_user_is_made_without_keys_as_the_policy_says():
    decision = decide_request(RequestObserved(REQUEST, CERTIFICATES), NOW)
    assert decision.status.phase is RequestPhase.APPROVED
    assert decision.user is not None
    assert decision.user["metadata"]["name"] == "ann"
    assert decision.user["spec"]["groups"] == ["research"]
    assert decision.user["spec"]["quota"]["servers"] == 2
    assert not {"keys", "github"} & decision.user["spec"].keys()


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (RequestObserved(REQUEST, DevServerLoginPolicySpec()), "NotAllowed"),
        (
            RequestObserved(
                REQUEST, DevServerLoginPolicySpec(first_login=FirstLogin(identity_provider=True))
            ),
            "NotAllowed",
        ),
        (RequestObserved(REQUEST, CERTIFICATES, refusal="The certificate is old."), "NotProven"),
        (
            RequestObserved(
                REQUEST,
                CERTIFICATES,
                DevServerUser(meta=ObjectMeta(name="ann"), spec=DevServerUserSpec(suspended=True)),
            ),
            "Suspended",
        ),
    ],
)
def test_any_other_is_denied_with_its_reason(seen: RequestObserved, reason: str):
    decision = decide_request(seen, NOW)
    assert (decision.status.phase, decision.status.reason) == (RequestPhase.DENIED, reason)
    assert decision.user is None


def test_a_user_who_is_there_is_not_made_again():
    there = DevServerUser(meta=ObjectMeta(name="ann"))
    decision = decide_request(RequestObserved(REQUEST, CERTIFICATES, there), NOW)
    assert (decision.status.phase, decision.user) == (RequestPhase.APPROVED, None)


def test_an_answer_is_kept_for_a_minute_and_never_changed():
    answer = decide_request(RequestObserved(REQUEST, DevServerLoginPolicySpec()), NOW).status
    request = structs.replace(REQUEST, status=answer)
    kept = decide_request(RequestObserved(request, CERTIFICATES), NOW + timedelta(seconds=30))
    assert (kept.status, kept.delete, kept.user) == (answer, False, None)
    assert decide_request(RequestObserved(request, CERTIFICATES), NOW + KEEP_DECIDED).delete
