"""`navarch policy`: unit tests of policies, and events judged anew."""

import json
from collections import Counter
from pathlib import Path

import pytest

from neorion.keel.cli import run
from neorion.navarch.adapters.config_file import default_policy
from neorion.navarch.adapters.policy_engine import SubprocessPolicyEngine
from neorion.navarch.cli import app
from neorion.navarch.cli.policy_replay import ReplayInput, compared, policy_of, recorded
from neorion.navarch.client import NavarchClient
from neorion.navarch.model import EventKind, HealthEvent
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.model.spec import HealthRules
from neorion.navarch.testing import later, node, spec
from tests.navarch.plane import OPERATOR, running

HARSH = """
rules:
  - name: everything-is-fatal
    condition: event.event_type == "xid"
    result: unhealthy
    action: replace
    certain: true
"""
TESTS = """
tests:
  - name: a GPU that fell off the bus is replaced
    event: { xid: 79, gpu: 3 }
    expect: { rule: gpu-fault, result: unhealthy, action: replace, certain: true }
  - name: an application's error costs nothing
    event: { xid: 13, gpu: 0 }
    expect: { result: healthy }
  - name: the third page fault on one GPU in a day is watched
    event: { xid: 31, gpu: 2 }
    recent: [{ ago: 5h, xid: 31, gpu: 2 }, { ago: 1h, xid: 31, gpu: 2 }]
    expect: { rule: application-error-again, result: degraded }
"""


def called(*args: str) -> int:
    return run(app, list(args))


def test_the_default_policy_passes_what_the_guide_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "tests.yaml").write_text(TESTS)
    assert called("policy", "test", str(tmp_path / "tests.yaml")) == 0
    assert "3 of 3 tests passed" in capsys.readouterr().err


def test_a_policy_that_differs_fails_and_says_in_what(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "harsh.yaml").write_text(HARSH)
    (tmp_path / "tests.yaml").write_text(f"policy: harsh.yaml\n{TESTS}")
    assert called("policy", "test", str(tmp_path / "tests.yaml"), "-o", "json") == 1
    found = {one["subject"]: one for one in json.loads(capsys.readouterr().out)}
    wrong = found["an application's error costs nothing"]
    assert wrong["sentence"] == "result is 'unhealthy', not 'healthy'."
    assert "rule everything-is-fatal" in wrong["hint"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tests:\n  - name: a\n    event: { xidd: 1 }\n    expect: { rule: b }\n", '"xid"'),
        ("tests:\n  - name: a\n    event: { xid: 1 }\n    expect: {}\n", "expects nothing"),
        ("tests: []\n", "tests"),
        ("tests:\n  - name: a\n    event: { type: therml }\n    expect: { rule: b }\n", "thermal"),
    ],
)
def test_a_wrong_file_is_refused_with_a_suggestion(
    text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "tests.yaml").write_text(text)
    assert called("policy", "test", str(tmp_path / "tests.yaml")) != 0
    assert says in capsys.readouterr().err


@pytest.mark.anyio
async def test_recorded_events_are_judged_anew_by_a_changed_policy(tmp_path: Path):
    (tmp_path / "harsh.yaml").write_text(HARSH)
    async with running(spec(1)) as plane:
        (node,) = await plane.serving(1)
        agent = plane.agent(plane.plane.keys.token_of(node.id))
        at = plane.plane.fleet.context.clock.now().ns // 1_000_000
        event = pb.HealthEvent(kind="xid", xid=13, gpu=0, at_ms=at)
        await agent.report(pb.ReportRequest(boot="one", first=1, events=[event]))
        stories = await recorded(NavarchClient(plane.dial(OPERATOR)), "")
    changed = await compared(stories, default_policy(), policy_of(tmp_path / "harsh.yaml", {}))
    assert [(one.node, one.before, one.after) for one in changed] == [
        (
            node.id,
            "healthy, restart_workload (application-error)",
            "unhealthy, restart_workload, certain (everything-is-fatal)",
        ),
        (node.id, "nothing", "restart_workload"),
    ]
    assert await compared(stories, default_policy(), default_policy()) == []


@pytest.mark.anyio
async def test_a_large_fleet_is_judged_by_two_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "harsh.yaml").write_text(HARSH)
    begun: list[SubprocessPolicyEngine] = []
    start = SubprocessPolicyEngine._start

    async def counted(self: SubprocessPolicyEngine) -> None:
        begun.append(self)
        await start(self)

    monkeypatch.setattr(SubprocessPolicyEngine, "_start", counted)
    faults = [HealthEvent(later(n), EventKind.XID, xid=74) for n in range(3)]
    stories = [ReplayInput(node(number), faults[: number % 3 + 1], HealthRules()) for number in range(300)]
    changed = await compared(stories, default_policy(), policy_of(tmp_path / "harsh.yaml", {}))
    assert len(begun) == 2
    told = Counter(one.node for one in changed if one.at)
    assert told == {story.node.id: len(story.events) for story in stories}


@pytest.mark.anyio
@pytest.mark.parametrize(("threshold", "needs"), [(1, "reset_gpu"), (2, "nothing")])
async def test_what_a_node_needs_in_the_end_is_by_the_rules_of_its_pool(
    threshold: int, needs: str, tmp_path: Path
):
    (tmp_path / "harsh.yaml").write_text(HARSH)
    async with running(spec(1, health=HealthRules(unhealthy_after=threshold))) as plane:
        (node,) = await plane.serving(1)
        agent = plane.agent(plane.plane.keys.token_of(node.id))
        await agent.report(pb.ReportRequest(boot="one", first=1, events=[pb.HealthEvent(kind="xid", xid=74)]))
        stories = await recorded(NavarchClient(plane.dial(OPERATOR)), "")
    changed = await compared(stories, default_policy(), policy_of(tmp_path / "harsh.yaml", {}))
    assert [one.before for one in changed if not one.at] == [needs]
