"""What a task finds around it, and what it does not."""

import os
import resource
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from neorion.iris.adapters.runtimes.process.runtime import ProcessRuntime
from neorion.iris.model import TaskEnvironment
from neorion.iris.ports import ExitKind
from neorion.keel.base import Duration, Invalid
from neorion.keel.clock import SystemClock
from tests.iris.runtimes.conftest import Orders
from tests.iris.runtimes.test_calls import log_of, run, value_of

pytestmark = pytest.mark.anyio
KNOWN = {"PATH", "LANG", "HOME", "IRIS_WORKDIR", "IRIS_ATTEMPT_UID"}
# What a shell or the C library's start adds by itself.
ADDED = {"PWD", "SHLVL", "_", "OLDPWD", "LC_CTYPE"}


async def test_the_environment_is_made_from_nothing(
    root: Path, orders: Orders, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SECRET_TOKEN", "hush")
    async with ProcessRuntime(root, SystemClock()) as runtime:
        await runtime.renew(Duration.of(seconds=20))

        def look() -> tuple[dict[str, str], str]:
            return dict(os.environ), Path("/proc/self/environ").read_text()

        variables, initial = value_of(await run(runtime, orders.call(look)))
        assert variables.keys() - ADDED == KNOWN
        assert "hush" not in initial
        order = orders.command("env")
        await run(runtime, order)
        names = {line.partition("=")[0] for line in log_of(runtime, order).splitlines()}
        assert names - ADDED == KNOWN


async def test_what_a_task_changes_about_its_variables_reaches_the_programs_it_starts(
    runtime: ProcessRuntime, orders: Orders
):
    def change() -> tuple[str, dict[bytes, bytes]]:
        before = dict(os.environb)
        os.environ["MINE"] = "é" * 1000
        os.environ["LANG"] = "C"
        del os.environ["HOME"]
        printed = subprocess.run(["env"], capture_output=True, check=True).stdout
        return printed.decode(), before

    order = replace(
        orders.call(change), environment=TaskEnvironment(variables=(("GIVEN", "a=b"), ("EMPTY", "")))
    )
    printed, before = value_of(await run(runtime, order))
    found = dict(line.split("=", 1) for line in printed.splitlines())
    assert before[b"GIVEN"] == b"a=b"
    assert before[b"EMPTY"] == b""
    changed = {name.decode(): text.decode() for name, text in before.items() if name != b"HOME"}
    assert found == changed | {"MINE": "é" * 1000, "LANG": "C"}


async def test_the_orders_variables_win_over_the_environments(runtime: ProcessRuntime, orders: Orders):
    order = replace(
        orders.shell('echo "$A$B"; python -c "import os; print(os.environ[\'A\'])"'),
        environment=TaskEnvironment(variables=(("A", "user"), ("B", "user"))),
        variables=(("A", "system"),),
    )
    await run(runtime, order)
    assert log_of(runtime, order) == "systemuser\nsystem\n"


async def test_a_task_leads_its_session_and_inherits_nothing(runtime: ProcessRuntime, orders: Orders):
    def look() -> dict[str, object]:
        def is_open(number: int) -> bool:
            try:
                os.fstat(number)
            except OSError:
                return False
            return True

        return {
            "leads": os.getsid(0) == os.getpid() == os.getpgid(0),
            "files": [number for number in range(256) if is_open(number)],
            "input": Path("/proc/self/fd/0").readlink(),
            "core": resource.getrlimit(resource.RLIMIT_CORE),
            "mask": os.umask(0),
            "blocked": signal.pthread_sigmask(signal.SIG_BLOCK, []),
            "here": str(Path.cwd()) == os.environ["HOME"] and not list(Path().iterdir()),
        }

    found = value_of(await run(runtime, orders.call(look)))
    assert found["leads"]
    assert found["here"]
    assert found["files"] == [0, 1, 2]
    assert str(found["input"]) == "/dev/null"
    assert found["core"] == (0, 0)
    assert found["mask"] == 0o022
    assert found["blocked"] == set()


@pytest.mark.parametrize("limited", [False, True], ids=["spawned", "forked"])
async def test_a_program_finds_signals_and_files_as_the_kernel_made_them(
    runtime: ProcessRuntime, orders: Orders, *, limited: bool
):
    order = orders.shell("grep -E 'SigIgn|SigBlk' /proc/self/status; ls -l /proc/self/fd; pwd; echo $HOME")
    if limited:
        order = replace(order, environment=TaskEnvironment(setup=("true",)))
    assert (await run(runtime, order)).well
    lines = log_of(runtime, order).splitlines()
    # All but the two that the C library keeps for itself.
    assert [int(line.split()[1], 16) & 0x7FFFFFFF for line in lines[:2]] == [0, 0]
    assert lines[-1] == lines[-2]
    # Input, output, error, and the directory that `ls` itself has open.
    assert sum("->" in line for line in lines) == 4


@pytest.mark.parametrize("prepared", [False, True], ids=["spawned", "forked"])
@pytest.mark.parametrize(
    ("script", "mode", "says"),
    [
        ("#!/bin/sh\nexit 5", 0o644, "is not executable"),
        ("#!/no/such/interpreter\n", 0o755, "No such file"),
        ("\x7fELF and nothing more", 0o755, "Exec format error"),
    ],
    ids=["no right", "no interpreter", "no program"],
)
async def test_a_file_that_cannot_be_run_says_why(
    runtime: ProcessRuntime, orders: Orders, script: str, mode: int, says: str, *, prepared: bool
):
    file = orders.root / "program"
    file.write_text(script)
    file.chmod(mode)
    order = orders.command(str(file))
    if prepared:
        order = replace(order, environment=TaskEnvironment(setup=("true",)))
    end = await run(runtime, order)
    assert (end.kind, end.code) == (ExitKind.NOT_STARTED, 126)
    assert says in end.message


@pytest.mark.parametrize("argv", [(), ("",), ("a\0b",), ("true", "\0")], ids=repr)
async def test_a_command_that_cannot_be_one_is_refused(
    runtime: ProcessRuntime, orders: Orders, argv: tuple[str, ...]
):
    with pytest.raises(Invalid):
        await runtime.start(orders.command(*argv))
    assert await runtime.seen() == []


@pytest.mark.parametrize("name", ["", "A=B", "A\0"])
async def test_a_variable_that_cannot_be_one_is_refused(runtime: ProcessRuntime, orders: Orders, name: str):
    with pytest.raises(Invalid):
        await runtime.start(replace(orders.command("true"), variables=((name, "x"),)))


async def test_arguments_longer_than_the_kernel_takes_are_not_started(
    runtime: ProcessRuntime, orders: Orders
):
    end = await run(runtime, orders.command("true", "x" * (4 << 20)))
    assert (end.kind, end.code) == (ExitKind.NOT_STARTED, 126)
    assert "too long" in end.message
