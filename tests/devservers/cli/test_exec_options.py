"""Options of `devctl exec`, on either side of the name of the server."""

import pytest

from neorion.devservers.cli.commands.access import exec_command
from neorion.devservers.cli.options import ClusterSelector
from neorion.keel.cli.app import NotStarted

LS = ("ls", "-l")


@pytest.mark.parametrize(
    ("line", "given"),
    [
        ("box -- ls -l", {}),
        ("box ls -l", {}),
        ("--rank 2 box -- ls -l", {"rank": 2}),
        ("box --rank 2 -- ls -l", {"rank": 2}),
        ("box --all -- ls -l", {"every": True}),
        ("--all box -- ls -l", {"every": True}),
        ("box -t --rank 1 -- ls -l", {"tty": True, "rank": 1}),
        ("-n team box --all -- ls -l", {"where": ClusterSelector("team"), "every": True}),
        ("box -n box --all -- ls -l", {"where": ClusterSelector("box"), "every": True}),
    ],
)
def test_options_stand_on_both_sides_of_the_name(line: str, given: dict[str, object]):
    with exec_command.make_context("exec", line.split()) as ctx:
        assert ctx.params["name"] == "box"
        words = ctx.params["command"]
        assert words[words[0] == "--" :] == LS
        assert {name: ctx.params[name] for name in given} == given


def test_what_follows_the_dashes_is_the_users_alone():
    with exec_command.make_context(
        "exec", ["box", "--all", "--", "sh", "-c", "x", "--", "--rank", "3"]
    ) as ctx:
        assert ctx.params["command"] == ("sh", "-c", "x", "--", "--rank", "3")
        assert ctx.params["rank"] is None
    with exec_command.make_context("exec", ["box", "ls", "--all", "--", "x"]) as ctx:
        assert ctx.params["command"] == ("ls", "--all", "--", "x")
    with pytest.raises(NotStarted):
        exec_command.make_context("exec", ["--no-such", "box", "--", "ls"])
