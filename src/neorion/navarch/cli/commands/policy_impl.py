"""The work of `navarch policy`."""

from pathlib import Path

import anyio

from neorion.keel.base import Finding, Severity
from neorion.keel.cli.kit import Output, show_findings
from neorion.keel.config import load
from neorion.navarch.adapters.config_file.policy_tests import PolicyTestFile, failures
from neorion.navarch.cli.policy_replay import REPLAYED, compared, judged, policy_of, recorded
from neorion.navarch.cli.session import ask


def test_command(out: Output, file: Path) -> int:
    tests = load(file, PolicyTestFile, out.env)
    rules = policy_of(tests.policy_path(file.parent), out.env)
    verdicts = anyio.run(judged, rules, [case.situation() for case in tests.tests])
    failed = failures(tests, verdicts)
    out.say(f"{len(tests.tests) - len(failed)} of {len(tests.tests)} tests passed.")
    return show_findings(
        out,
        [
            Finding(
                Severity.ERROR,
                "navarch.policy_test",
                one.name,
                f"{'; '.join(one.differences)}.",
                f"The policy says: {one.sentence}.",
            )
            for one in failed
        ],
    )


def replay_command(out: Output, file: Path, against: Path | None, pool: str, server: str) -> None:
    before, after = policy_of(against, out.env), policy_of(file, out.env)
    stories = ask(out, server, lambda client: recorded(client, pool))
    out.say(f"{sum(len(one.events) for one in stories)} events of {len(stories)} nodes are evaluated again.")
    out.show(anyio.run(compared, stories, before, after), REPLAYED)
