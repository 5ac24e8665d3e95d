import sys
from importlib.metadata import version
from pathlib import Path

import click
import pytest

from neorion.keel.cli import App, SuggestingChoice, run, yes_option
from neorion.keel.cli.kit import Output

PART = """
import click
from neorion.keel.cli import App
app = App("part", env_prefix="PART")
@app.command("go")
@click.option("--count", type=int, default=1)
def go(out, count):
    "Go."
    out.text(f"{count}\\n")
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> App:
    (tmp_path / "mounted_part.py").write_text(PART)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mounted_part", raising=False)
    app = App("prog", help="A program.", env_prefix="PROG", distribution="click")

    @app.command("list", heading="Reading")
    @click.option("--limit", type=int, default=10)
    @click.option("--kind", type=SuggestingChoice(["node", "pool"]), default="node")
    @yes_option
    def list_(out: Output, limit: int, kind: str, yes: bool) -> None:  # noqa: FBT001 -- click calls it
        """List things."""
        out.text(f"{limit} {kind} {yes}\n")

    @app.group("deep", heading="Reading")
    def deep() -> None:
        """Below."""

    @deep.command("down")
    @click.option("--limit", type=int, default=10)
    def down(out: Output, limit: int) -> None:
        """Further."""
        out.text(f"{limit}\n")

    app.mount("part", "mounted_part:app", help="Another part.", heading="Systems")
    return app


def test_help_names_mounted_parts_below_their_headings_without_importing_them(
    app: App, capsys: pytest.CaptureFixture[str]
):
    assert run(app, ["--help"]) == 0
    shown = capsys.readouterr().out
    assert "Reading:\n  list  List things.\n  deep  Below.\n\nSystems:\n  part  Another part.\n" in shown
    assert "mounted_part" not in sys.modules
    assert run(app, ["part", "go"]) == 0
    assert capsys.readouterr().out == "1\n"
    assert run(app, ["-h"]) == 0


def test_no_command_shows_the_help_and_is_wrong_usage(app: App, capsys: pytest.CaptureFixture[str]):
    assert run(app, []) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "Usage: prog" in told.err


def test_the_version_is_named(app: App, capsys: pytest.CaptureFixture[str]):
    assert run(app, ["--version"]) == 0
    assert capsys.readouterr().out == f"prog {version('click')}\n"


def test_one_prefix_gives_every_option_its_variable(
    app: App, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PROG_LIMIT", "3")
    monkeypatch.setenv("PART_COUNT", "7")
    monkeypatch.setenv("PROG_YES", "1")
    for args, shown in (
        (["list"], "3 node False\n"),
        (["deep", "down"], "3\n"),
        (["deep", "down", "--limit", "4"], "4\n"),
        (["part", "go"], "7\n"),
    ):
        assert run(app, args) == 0
        assert capsys.readouterr().out == shown
    run(app, ["list", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "[env var: PROG_LIMIT;" in shown
    assert "PROG_YES" not in shown


def test_shared_options_have_one_variable_for_all_command_lines(
    app: App, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("NEORION_OUTPUT", "json")
    assert run(app, ["lst"]) == 2
    assert capsys.readouterr().err.startswith('{"error":')
    monkeypatch.setenv("NEORION_OUTPUT", "jsn")
    assert run(app, ["list"]) == 2
    told = capsys.readouterr().err
    assert "(env var: 'NEORION_OUTPUT')" in told
    assert 'did you mean "json"?' in told


@pytest.mark.parametrize(
    ("args", "sentence", "hint"),
    [
        (["lst"], "No such command 'lst'.", 'did you mean "list"? See: prog --help'),
        (["prt"], "No such command 'prt'.", 'did you mean "part"? See: prog --help'),
        (["list", "--limt", "3"], "No such option '--limt'.", 'did you mean "--limit"? See: prog list --help'),
        (["list", "--kind", "nod"], 'did you mean "node"?', "See: prog list --help"),
        (["list", "--limit", "x"], "'x' is not a valid integer", "See: prog list --help"),
        (["list", "-o"], "Option '-o' requires an argument.", "See: prog --help"),
        (["list", "extra"], "unexpected extra argument (extra)", "See: prog list --help"),
        (["deep", "xyz"], "No such command 'xyz'.", "known: down. See: prog deep --help"),
        (["deep", "dwn"], "No such command 'dwn'.", 'did you mean "down"? See: prog deep --help'),
    ],
)  # fmt: skip
def test_typos_are_answered_with_the_right_word(
    app: App, capsys: pytest.CaptureFixture[str], args: list[str], sentence: str, hint: str
):
    assert run(app, args) == 2
    told = capsys.readouterr()
    assert told.out == ""
    first, second, third = told.err.splitlines()
    assert first.startswith("error: ")
    assert sentence in first
    assert second == f"hint: {hint}"
    assert third == "code: cli.usage"


def test_shells_are_told_the_names_without_importing_what_is_mounted(
    app: App, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("_PROG_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "prog ")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert run(app, []) == 0
    assert capsys.readouterr().out.split() == ["plain,list", "plain,deep", "plain,part"]
    assert "mounted_part" not in sys.modules
    monkeypatch.setenv("COMP_WORDS", "prog list --li")
    monkeypatch.setenv("COMP_CWORD", "2")
    run(app, [])
    assert capsys.readouterr().out.split() == ["plain,--limit"]
