"""The `neorion` command as people meet it: a process of its own, on a terminal or in a pipe."""

import contextlib
import json
import os
import pty
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import distribution
from pathlib import Path

import click
import pytest
import yaml

import neorion
from neorion.cli import app
from neorion.drydock.cli import app as drydock
from neorion.iris.cli import app as iris
from neorion.keel.base import FAMILIES
from neorion.keel.cli import App, Exit, run
from neorion.navarch.cli import app as navarch
from tests.command_tree import COMMANDS

PROGRAM = [sys.executable, "-m", "neorion"]
ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8"}


def call(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *args], capture_output=True, text=True, errors="replace", check=False, env=ENV | env
    )


def on_a_terminal(*args: str, columns: int = 80, env: Mapping[str, str] | None = None) -> str:
    """What a person sees: stdout and stderr on a pseudo terminal."""
    ours, theirs = pty.openpty()
    settings = ENV | {"TERM": "xterm-256color", "COLUMNS": str(columns)} | dict(env or {})
    process = subprocess.Popen([*PROGRAM, *args], stdin=theirs, stdout=theirs, stderr=theirs, env=settings)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # how Linux says that the other side is closed
        while chunk := os.read(ours, 65536):
            shown += chunk
    os.close(ours)
    assert process.wait() in {0, 1, 2}
    return shown.decode().replace("\r\n", "\n")


RUNS = {
    ("devctl", "exec"),
    ("devctl", "ssh"),
    ("devctl", "submit"),
    ("drydock", "kubectl"),
    ("iris", "run"),
    ("iris", "job", "wait"),
}


# (exit code, stdout, stderr)
Called = tuple[int, str, str]


@pytest.fixture
def called(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Called]:
    """Calls the command line in this process; groups as programs: there are few, and a start takes a tenth of a second."""
    for name in ("COLUMNS", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)

    def call_here(path: tuple[str, ...], *args: str) -> Called:
        if len(path) < 2:
            done = call(*path, *args)
            return done.returncode, done.stdout, done.stderr
        capfd.readouterr()
        code = run(app, [*path, *args])
        out, err = capfd.readouterr()
        return code, out, err

    return call_here


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_a_help_that_fits_the_terminal(
    path: tuple[str, ...], called: Callable[..., Called]
):
    code, out, err = called(path, "--help")
    assert code == 0
    assert err == ""
    assert out.startswith(" ".join(["Usage: neorion", *path]))
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out


@pytest.mark.parametrize("group", [app, drydock, iris, navarch], ids=lambda group: group.name)
def test_the_line_in_the_list_is_the_line_of_the_command(group: App):
    ctx = click.Context(group)
    listed = {name: words for name, _, words in group._listed()}
    for name, words in listed.items():
        command = group.get_command(ctx, name)
        assert command is not None
        assert command.get_short_help_str(limit=200) == words


HEAVY = [
    "asyncio",
    "tqdm",
    "yaml",
    "pydantic",
    "connectrpc",
    "pyqwest",
    "granian",
    "apsw",
    "msgspec",
    "anyio",
]


def test_help_loads_nothing_heavy():
    # Each help in a process of its own, forked from one that has loaded no command yet.
    script = f"""
import os, sys
from neorion.cli import app
from neorion.keel.cli import run
for path in {COMMANDS!r}:
    if os.fork():
        os.wait()
    else:
        assert run(app, [*path, '--help']) == 0
        print(*path, sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr, flush=True)
        os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=ENV)
    assert done.stderr.splitlines() == [f"{' '.join([*path, '[]'])}" for path in COMMANDS]


def test_a_table_in_a_pipe_loads_nothing_for_terminals():
    script = (
        "import sys\n"
        "from neorion.cli import app\n"
        "from neorion.keel.cli import run\n"
        "run(app, ['explain'])\n"
        "assert not {'tqdm', 'yaml', 'asyncio'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=ENV)


def test_help_takes_little_longer_than_python_itself():
    def seconds(command: Sequence[str]) -> float:
        began = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True, env=ENV)
        return time.perf_counter() - began

    rounds = [(seconds([*PROGRAM, "--help"]), seconds([sys.executable, "-c", "pass"])) for _ in range(7)]
    # About five times on an idle machine; pydantic or asyncio alone would add four more.
    assert statistics.median(ours / bare for ours, bare in rounds) < 9


def test_the_client_stays_small():
    """What `pip install neorion` brings: the closure of the core dependencies, without bytecode."""
    wanted, found = ["neorion"], dict[str, int]()
    while wanted:
        name = wanted.pop().lower().replace("_", "-")
        if name in found:
            continue
        package = distribution(name)
        files = [file for file in package.files or () if "__pycache__" not in file.parts]
        found[name] = sum(file.size or 0 for file in files)
        for line in package.requires or ():
            requirement, _, marker = line.partition(";")
            if not re.search(r"extra ==|sys_platform == .win32.|python_version < ", marker):
                name_found = re.match(r"[A-Za-z0-9._-]+", requirement)
                assert name_found is not None
                wanted.append(name_found[0])
    # Installed from a checkout, our own list of files is nearly empty: count the folder itself.
    ours = Path(neorion.__file__).parent
    found["neorion"] += sum(
        file.stat().st_size for file in ours.rglob("*") if file.suffix in {".py", ".json"}
    )
    assert len(found) <= 20, sorted(found)
    assert sum(found.values()) <= 30 * 2**20, found


@pytest.mark.parametrize(
    "path", [("doctor",), ("explain",), ("explain", "conflict"), ("version",)], ids=" ".join
)
def test_machines_get_pure_data(path: tuple[str, ...]):
    as_json = call(*path, "-o", "json")
    as_yaml = call(*path, "-o", "yaml")
    assert as_json.returncode == as_yaml.returncode
    assert json.loads(as_json.stdout) == yaml.safe_load(as_yaml.stdout)
    assert as_json.stderr == as_yaml.stderr == ""
    assert call(*path, "-o", "name").stdout.strip()


@pytest.mark.parametrize("path", COMMANDS[1:], ids=" ".join)
def test_with_json_stdout_stays_empty_on_errors_and_stderr_holds_one_object(
    path: tuple[str, ...], called: Callable[..., Called]
):
    code, out, err = called(path, "--no-such-option", "-o", "json")
    # Where an exit code may be that of a program of the user's, ours is another.
    assert code == (Exit.NOT_STARTED if path in RUNS else Exit.USAGE)
    assert out == ""
    assert json.loads(err)["error"]["code"] == "cli.usage"


ESCAPES = re.compile("\x1b")


def test_a_terminal_gets_colour_and_nobody_else_does():
    assert ESCAPES.search(on_a_terminal("doctor"))
    assert ESCAPES.search(on_a_terminal("nonsense"))
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb"), ("NEORION_COLOR", "never")):
        assert not ESCAPES.search(on_a_terminal("explain", env={name: value}))
    assert not ESCAPES.search(on_a_terminal("nonsense", "--color", "never"))
    assert not ESCAPES.search(on_a_terminal("explain", "-o", "json"))
    assert not ESCAPES.search(call("explain").stdout)
    assert ESCAPES.search(call("explain", FORCE_COLOR="1").stdout)
    assert ESCAPES.search(call("explain", "--color", "always", NO_COLOR="1").stdout)


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_tables_fit_the_terminal(columns: int):
    shown = on_a_terminal("explain", columns=columns, env={"NO_COLOR": "1"})
    assert max(map(len, shown.splitlines())) <= columns
    for family in FAMILIES:
        assert re.search(rf"^{family} ", shown, re.MULTILINE)


def test_doctor_says_what_the_machine_can_run(tmp_path: Path):
    done = call("doctor", "-o", "json", NEORION_STATE_DIR=str(tmp_path / "new"))
    findings = {each["subject"]: each for each in json.loads(done.stdout)}
    assert done.returncode == 0
    assert findings["state folder"]["sentence"] == f"{tmp_path / 'new'} can be created."
    assert findings["sqlite"]["severity"] == "info"
    assert findings["extra server"]["severity"] == "info"
    assert not (tmp_path / "new").exists()


def test_doctor_fails_where_state_cannot_be_kept(tmp_path: Path):
    (tmp_path / "file").write_text("")
    done = call("doctor", "--state-dir", str(tmp_path / "file" / "state"), "-o", "json")
    assert done.returncode == 1
    assert [each["code"] for each in json.loads(done.stdout) if each["severity"] == "error"] == [
        "doctor.state_dir"
    ]


def test_explain_knows_every_family_and_suggests():
    shown = {each["code"]: each for each in json.loads(call("explain", "-o", "json").stdout)}
    assert {name: (each["exit_code"], each["http_status"]) for name, each in shown.items()} == {
        name: (family.exit_code, family.http_status) for name, family in FAMILIES.items()
    }
    assert json.loads(call("explain", "conflict", "-o", "json").stdout) == shown["conflict"]
    done = call("explain", "conflct")
    assert done.returncode == 3
    assert 'did you mean "conflict"?' in done.stderr


def test_explain_reads_single_codes_from_the_generated_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    codes = tmp_path / "codes.json"
    codes.write_text(
        json.dumps({"store.fenced": {"family": "conflict", "meaning": "Another owner took over."}})
    )
    monkeypatch.setattr("neorion.cli.explain._CODES", codes)
    assert run(app, ["explain", "store.fenced", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "code": "store.fenced",
        "family": "conflict",
        "exit_code": 5,
        "http_status": 409,
        "meaning": "Another owner took over.",
    }


@pytest.mark.parametrize(
    ("code", "family", "words"),
    [
        ("iris.infeasible", "invalid", "No worker and no scale group"),
        ("cli.usage", "invalid", "command line"),
        ("iris.wait", "deadline", "has not ended within"),
        ("iris.out_of_memory", "terminal", "more memory"),
        ("user_cap", "", "the limit is"),
        ("out_of_memory", "", "more memory"),
    ],
)
def test_explain_knows_what_iris_prints(code: str, family: str, words: str):
    found = json.loads(call("explain", code, "-o", "json").stdout)
    assert found["family"] == family
    assert words in found["meaning"]


def test_the_version_is_the_same_wherever_one_asks():
    installed = distribution("neorion").version
    assert call("--version").stdout == f"neorion {installed}\n"
    assert call("version", "-o", "name").stdout == f"{installed}\n"
    for program in ("neorion", "iris", "navarch", "devctl"):
        script = Path(sys.executable).with_name(program)
        done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True, env=ENV)
        assert done.stdout == f"{program} {installed}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str):
    done = call("completion", shell)
    assert done.returncode == 0
    assert "_NEORION_COMPLETE" in done.stdout


def test_bash_completes_our_commands():
    done = call(_NEORION_COMPLETE="bash_complete", COMP_WORDS="neorion do", COMP_CWORD="1")
    assert done.stdout.split() == ["plain,doctor"]
    script = f"""
        neorion() {{ {sys.executable} -m neorion "$@"; }}
        eval "$({sys.executable} -m neorion completion bash)"
        complete -p neorion
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, env=ENV)
    assert "_neorion_completion" in done.stdout


@pytest.mark.parametrize("args", ["doctor", "explain -o json", "--help", "completion bash", "nonsense 2>&1"])
def test_a_reader_that_leaves_is_no_error(args: str):
    script = f"{sys.executable} -m neorion {args} | head -c 0; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, env=ENV)
    assert done.stderr == ""
    # The program may have written everything before the reader left.
    assert done.stdout.strip() in {"0", "2", "141"}


def test_closed_streams_do_no_harm():
    for close in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        script = f"{sys.executable} -m neorion explain {close}; exit $?"
        assert (
            subprocess.run(["bash", "-c", script], capture_output=True, check=False, env=ENV).returncode == 0
        )


def test_a_full_disk_is_told():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*PROGRAM, "explain"], stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=ENV
        )
    assert done.returncode == 1
    assert done.stderr == "error: No space left on device.\ncode: cli.system\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_locale_without_our_letters_gets_escapes(encoding: str):
    told = call("explain", "→", PYTHONIOENCODING=encoding)
    assert told.returncode == 3
    assert "\\u2192" in told.stderr
    shown = call("doctor", "--state-dir", "/tmp/→", PYTHONIOENCODING=encoding)  # noqa: S108 -- only looked at
    assert shown.returncode == 0
    assert "/tmp/\\u2192 can be created." in shown.stdout  # noqa: S108 -- only looked at
    assert json.loads(call("explain", "-o", "json", PYTHONIOENCODING=encoding).stdout)


def test_no_arguments_show_the_help_as_wrong_usage():
    done = call()
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Usage: neorion" in done.stderr


GUIDES = Path(__file__).parents[1] / "docs" / "guides"


def test_the_guide_shows_the_exit_codes_there_are():
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", (GUIDES / "cli.md").read_text(), re.MULTILINE)
    assert [(int(code), name) for code, name in rows] == [(each.value, each.name) for each in Exit]
