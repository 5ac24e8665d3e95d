"""The life of one development server from its first day to the end of its home, by the commands of its user."""

import json

import pytest

from tests.node.devservers import Devctl
from tests.node.pods import NEEDS

pytestmark = [NEEDS, pytest.mark.timeout(600)]


def test_a_home_outlives_every_change_of_its_server_and_ends_after_its_retention(devctl: Devctl):
    def file() -> str:
        return devctl.good("exec", "story", "--", "cat", "diary")

    devctl.good("create", "story", "--flavor", "cpu-small", "--home-size", "1Gi", "--time", "4h", "--wait")
    devctl.good("exec", "story", "--", "sh", "-c", "echo day one > diary")
    devctl.good("update", "story", "--flavor", "cpu-medium", "--yes")
    assert file() == "day one\n"

    # devctl itself gives no time that short; it counts from the start, and so is over.
    devctl.change("story", {"lifecycle": {"timeToLive": "1s"}})
    devctl.until_phase("story", "Expired")
    assert devctl("exec", "story", "--", "true").returncode == 125
    assert "its time was over" in devctl.good("describe", "story")
    devctl.good("start", "story", "--time", "1h")
    assert file() == "day one\n"
    told = {one["reason"] for one in json.loads(devctl.good("events", "story", "-o", "json"))}
    assert {"Ready", "Stopping"} <= told

    devctl.change("story", {"home": {"retention": "1s"}})
    devctl.good("delete", "story", "--yes")
    assert devctl("describe", "story").returncode == 3
    devctl.until_gone("pvc/story-home")
    devctl.good("create", "story", "--home-size", "1Gi", "--wait")
    assert devctl("exec", "story", "--", "test", "-e", "diary").returncode == 1
    devctl.good("delete", "story", "--yes")


def test_what_expires_and_is_not_started_again_goes_after_its_retention(devctl: Devctl):
    devctl.good("create", "brief", "--home-size", "1Gi", "--time", "1h")
    lifecycle = {"timeToLive": "1s", "retention": "1s"}
    devctl.change("brief", {"lifecycle": lifecycle, "home": {"retention": "1s"}})
    devctl.until_gone("devserver/brief")
    devctl.until_gone("pvc/brief-home")
