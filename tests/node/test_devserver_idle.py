"""Servers that nobody uses stop by themselves, and those that somebody uses do not: seen inside real containers."""

import json
from collections.abc import Generator

import pytest

from tests.node.devctl_terminal import Person
from tests.node.devservers import PROGRAM, Devctl
from tests.node.pods import NEEDS

pytestmark = [NEEDS, pytest.mark.timeout(600)]

_SMALL = {"cpu": "200m", "memory": "128Mi"}
FLAVOR = {
    "apiVersion": "devservers.io/v1",
    "kind": "DevServerFlavor",
    "spec": {
        "resources": {"requests": _SMALL, "limits": _SMALL},
        # A user cannot ask for less than a minute; a flavor can.
        "limits": {"maxIdle": "20s"},
    },
}


@pytest.fixture
def fleeting(devctl: Devctl) -> Generator[str]:
    """A flavor whose servers stop soon after their last use."""
    name = f"fleeting-{devctl.namespace}"
    devctl.kubectl("apply", "-f", "-", say=json.dumps({**FLAVOR, "metadata": {"name": name}}))
    yield name
    devctl.kubectl("delete", "devserverflavor", name)


def status(devctl: Devctl, name: str) -> dict[str, dict[str, str]]:
    return json.loads(devctl.kubectl("get", "devserver", name, "-o", "json"))["status"]


def test_a_server_stops_when_nobody_uses_it_and_not_before(devctl: Devctl, fleeting: str):
    devctl.good("create", "busy", fleeting, "--home-size", "1Gi", "--wait")
    # It ends with its server, whatever becomes of the test.
    devctl.good("exec", "busy", "--", "sh", "-c", "while :; do :; done >/dev/null 2>&1 &")
    # Only now: on a busy machine it would be idle before the other one has started.
    devctl.good("create", "quiet", fleeting, "--home-size", "1Gi", "--wait")
    person = Person.start([*PROGRAM, "ssh", "quiet"], devctl.env)
    person.see("# ")
    person.type("exit\n")
    assert person.exit_code() == 0
    devctl.until_phase("quiet", "Stopped")
    assert status(devctl, "quiet")["stopReason"] == "Idle"
    assert "it was idle" in devctl.good("describe", "quiet")
    assert "Stopping" in {one["reason"] for one in json.loads(devctl.good("events", "quiet", "-o", "json"))}

    used = status(devctl, "busy")
    assert (used["phase"], used["activity"]["source"]) == ("Running", "CPU use")
    assert "it is idle" in devctl.good("describe", "busy")
    devctl.good("start", "quiet")
    devctl.good("delete", "quiet", "busy", "--yes")
