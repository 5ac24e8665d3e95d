"""`navarch policy`: what a health policy makes of events, tried before it is in force."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from neorion.keel.cli import App
from neorion.keel.cli.kit import Column, Output, Table, require_extra, show_findings
from neorion.navarch.cli.options import server_option

policy = App("policy", help="Try a health policy before it is in force.")


@dataclass(frozen=True, slots=True)
class PolicyDifferenceRecord:
    """One event, or one node in the end, that another policy judges differently."""

    node: str
    at: str
    event: str
    before: str
    after: str


REPLAYED: Final[Table[PolicyDifferenceRecord]] = Table(
    (
        Column("NODE", lambda it: it.node),
        Column("AT", lambda it: it.at, priority=2),
        Column("EVENT", lambda it: it.event, wrap=True),
        Column("BEFORE", lambda it: it.before, wrap=True),
        Column("AFTER", lambda it: it.after, wrap=True),
    ),
    name=lambda it: it.node,
    empty="Nothing would be different.",
)


@policy.command("test")
@click.argument("file", type=click.Path(path_type=Path))
def test_command(out: Output, file: Path) -> int:
    """Run the unit tests of a policy."""
    require_extra("server", "navarch")
    import anyio  # noqa: PLC0415 -- the help does not need it

    from neorion.keel.base import Finding, Severity  # noqa: PLC0415 -- as above
    from neorion.keel.config import load  # noqa: PLC0415 -- as above
    from neorion.navarch.adapters.config_file.policy_tests import PolicyTestFile, failures  # noqa: PLC0415 -- as above
    from neorion.navarch.cli.policy_replay import judged, policy_of  # noqa: PLC0415 -- as above

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


@policy.command("replay")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--against", type=click.Path(path_type=Path), help="The policy to compare with; navarch's own.")
@click.option("--pool", default="", metavar="NAME", help="Only nodes of this pool.")
@server_option
def replay_command(out: Output, file: Path, against: Path | None, pool: str, server: str) -> None:
    """Say what a changed policy would have made of recorded events."""
    require_extra("server", "navarch")
    import anyio  # noqa: PLC0415 -- the help does not need it

    from neorion.navarch.cli.policy_replay import compared, policy_of, recorded  # noqa: PLC0415 -- as above
    from neorion.navarch.cli.session import ask  # noqa: PLC0415 -- as above

    before, after = policy_of(against, out.env), policy_of(file, out.env)
    stories = ask(out, server, lambda client: recorded(client, pool))
    out.say(f"{sum(len(one.events) for one in stories)} events of {len(stories)} nodes are judged anew.")
    out.show(anyio.run(compared, stories, before, after), REPLAYED)
