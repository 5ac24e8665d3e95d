"""Kinds and objects as values."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neorion.keel.base import Conflict, Deadline, Denied, Error, Instant, Invalid, NotFound, QuotaExceeded
from neorion.keel.kube import (
    AlreadyExists,
    InvalidObject,
    Kind,
    KubeObject,
    ObjectKey,
    ObjectMeta,
    OwnerReference,
    ResourceExpired,
    UnknownKind,
    instant,
    micro_time_text,
    time_text,
)
from neorion.keel.kube.core import LEASE, NODE, POD, SECRET, Lease, LeaseSpec, Secret
from neorion.keel.kube.errors import Status, StatusCause, StatusDetails, refusal


class DevServer(KubeObject, frozen=True):
    pass


DEV_SERVER = Kind(DevServer, "DevServer", "devservers", "devservers.io")


def test_a_path_is_made_of_group_namespace_and_name():
    assert POD.path() == "/api/v1/pods"
    assert POD.path("n", "p", "log") == "/api/v1/namespaces/n/pods/p/log"
    assert NODE.path(name="n1") == "/api/v1/nodes/n1"
    assert DEV_SERVER.path("n", "d") == "/apis/devservers.io/v1/namespaces/n/devservers/d"
    assert (DEV_SERVER.api_version, DEV_SERVER.resource) == ("devservers.io/v1", "devservers.devservers.io")


@settings(deadline=None)
@given(namespace=st.text(min_size=1), name=st.text(min_size=1))
def test_no_name_leads_out_of_its_namespace(namespace: str, name: str):
    try:
        path = POD.path(namespace, name)
    except (Invalid, UnicodeEncodeError):
        return
    before, _, last = path.rpartition("/")
    assert before.startswith("/api/v1/namespaces/")
    assert before.count("/") == 5
    assert last not in {"", ".", ".."}
    assert not set(path) & set("?#\r\n ")


@pytest.mark.parametrize("name", [".", ".."])
def test_dots_are_no_names(name: str):
    with pytest.raises(Invalid) as refused:
        POD.path("n", name)
    assert refused.value.code == "kube.name"


def test_a_manifest_holds_what_was_given_and_nothing_else():
    lease = Lease(ObjectMeta(name="l", namespace="n"), LeaseSpec(lease_transitions=0))
    assert LEASE.manifest(lease) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l", "namespace": "n"},
        "spec": {"leaseTransitions": 0},
    }


def test_metadata_that_are_no_metadata_are_refused():
    with pytest.raises(Invalid) as refused:
        POD.key({"metadata": {"name": 7}})
    assert refused.value.code == "kube.metadata"


def test_the_controller_is_the_owner_that_manages():
    owner = OwnerReference("v1", "Pod", "p", "u1")
    boss = OwnerReference("apps/v1", "ReplicaSet", "r", "u2", controller=True)
    assert ObjectMeta(owners=(owner, boss)).controller == boss
    assert ObjectMeta(owners=(owner,)).controller is None
    assert [str(ObjectKey("n", "a")), str(ObjectKey("", "a"))] == ["n/a", "a"]


def test_a_secret_keeps_its_values_out_of_its_text():
    secret = Secret(ObjectMeta(name="s", namespace="n"), data={"password": "aHVudGVyMg=="})
    assert secret.value("password") == b"hunter2"
    assert secret.value("other") is None
    assert "aHVudGVyMg" not in repr(secret)
    with pytest.raises(Invalid):
        Secret(data={"a": "not base64"}).value("a")
    assert SECRET.manifest(secret)["data"] == {"password": "aHVudGVyMg=="}


@settings(deadline=None)
@given(st.integers(min_value=0, max_value=4_000_000_000_000_000))
def test_times_with_microseconds_survive_the_way_there_and_back(us: int):
    moment = Instant(us * 1_000)
    text = micro_time_text(moment)
    assert instant(text) == moment
    # The server demands exactly six digits, also when they are zeros.
    assert len(text.partition(".")[2]) == 7
    assert instant(time_text(moment)).ns == us // 1_000_000 * 1_000_000_000


def test_what_is_no_time_is_refused():
    with pytest.raises(Invalid) as refused:
        instant("yesterday")
    assert refused.value.code == "kube.time"


@pytest.mark.parametrize(
    ("code", "reason", "details", "family", "word"),
    [
        (400, "BadRequest", StatusDetails(), Invalid, "kube.bad_request"),
        (403, "Forbidden", StatusDetails(name="p"), Denied, "kube.denied"),
        (404, "NotFound", StatusDetails(name="p", kind="pods"), NotFound, "kube.not_found"),
        (404, "", StatusDetails(), UnknownKind, "kube.unknown_kind"),
        (405, "MethodNotAllowed", StatusDetails(), Error, "kube.unsupported"),
        (409, "AlreadyExists", StatusDetails(name="p"), AlreadyExists, "kube.exists"),
        (409, "Conflict", StatusDetails(name="p"), Conflict, "kube.conflict"),
        (410, "Expired", StatusDetails(), ResourceExpired, "kube.expired"),
        (413, "RequestEntityTooLarge", StatusDetails(), Invalid, "kube.too_large"),
        (504, "Timeout", StatusDetails(), Deadline, "kube.timeout"),
        (599, "", StatusDetails(), Error, "kube.failed"),
    ],
)
def test_a_refusal_becomes_the_family_that_says_what_to_do(
    code: int, reason: str, details: StatusDetails, family: type[Error], word: str
):
    error = refusal(Status("Failure", "No.", reason, code, details))
    assert isinstance(error, family)
    assert (error.code, str(error)) == (word, "No.")
    assert error.hint


def test_an_exhausted_quota_is_not_a_missing_right():
    text = 'pods "p" is forbidden: exceeded quota: gpus, requested: nvidia.com/gpu=8'
    assert isinstance(refusal(Status("Failure", text, "Forbidden", 403)), QuotaExceeded)


def test_an_invalid_object_says_where():
    causes = (
        StatusCause("FieldValueInvalid", "too large", "spec.size"),
        StatusCause("x", "y", "spec.colour"),
    )
    error = refusal(Status("Failure", "Widget is invalid", "Invalid", 422, StatusDetails(causes=causes)))
    assert isinstance(error, InvalidObject)
    assert error.causes == causes
    assert error.hint == "Correct spec.colour, spec.size."
