"""What is made ready before a task: files, packages, setup."""

import importlib
import importlib.util
import stat
import zipfile
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import anyio
import pytest

from neorion.iris.adapters.runtimes.process.runtime import ProcessRuntime
from neorion.iris.adapters.runtimes.process.task import bundle
from neorion.iris.model import TaskEnvironment
from neorion.iris.ports import ExitKind, Phase
from neorion.iris.testing.runtime_waits import ended, written
from neorion.keel.base import Duration, Invalid
from tests.iris.runtimes.conftest import Orders
from tests.iris.runtimes.test_calls import log_of, run, value_of

pytestmark = pytest.mark.anyio


def archive(path: Path, *entries: tuple[str, str, int]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, text, mode in entries:
            info = zipfile.ZipInfo(name)
            info.filename = name
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(info, text)
    return path


FILE, PROGRAM, LINK, DEVICE = (
    stat.S_IFREG | 0o644,
    stat.S_IFREG | 0o755,
    stat.S_IFLNK | 0o777,
    stat.S_IFBLK | 0o644,
)

HOSTILE: dict[str, tuple[tuple[str, str, int], ...]] = {
    "climbs out": (("ok", "", FILE), ("../out", "x", FILE)),
    "climbs out in the middle": (("ok", "", FILE), ("a/../../out", "x", FILE)),
    "absolute": (("ok", "", FILE), ("/out", "x", FILE)),
    "backslash": (("ok", "", FILE), ("..\\out", "x", FILE)),
    "drive": (("ok", "", FILE), ("c:/out", "x", FILE)),
    "link": (("ok", "", FILE), ("out", "/etc/passwd", LINK)),
    "device": (("ok", "", FILE), ("out", "", DEVICE)),
    "twice": (("ok", "", FILE), ("ok", "x", FILE)),
    "file and directory": (("ok", "", FILE), ("ok/x", "x", FILE)),
    "nothing": (("ok", "", FILE), ("./", "x", FILE)),
}


@pytest.mark.parametrize("entries", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_hostile_archive_is_refused_before_the_first_write(
    tmp_path: Path, entries: tuple[tuple[str, str, int], ...]
):
    target = tmp_path / "deep" / "work"
    target.mkdir(parents=True)
    with pytest.raises(Invalid) as caught:
        bundle.unpack(archive(tmp_path / "bundle.zip", *entries), target)
    assert caught.value.code == "runtime.bundle"
    assert {path.name for path in tmp_path.rglob("*")} == {"deep", "work", "bundle.zip"}


@pytest.mark.parametrize("limit", ["ENTRIES_MAX", "BYTES_MAX"])
def test_an_archive_over_a_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str):
    monkeypatch.setattr(bundle, limit, 1)
    target = tmp_path / "work"
    target.mkdir()
    with pytest.raises(Invalid, match="1 at most"):
        bundle.unpack(archive(tmp_path / "b.zip", ("a", "xx", FILE), ("b", "xx", FILE)), target)
    assert list(target.iterdir()) == []


def test_a_bomb_is_refused_and_what_merely_shrinks_well_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    zeros = archive(tmp_path / "b.zip", ("logs/12:30.txt", "\0" * (32 << 20), FILE), ("7:15.txt", "", FILE))
    target = tmp_path / "work"
    target.mkdir()
    bundle.unpack(zeros, target)
    assert (target / "logs/12:30.txt").stat().st_size == 32 << 20
    monkeypatch.setattr(bundle, "RATIO_FREE_BYTES", 16 << 20)
    (tmp_path / "other").mkdir()
    with pytest.raises(Invalid, match="times its size"):
        bundle.unpack(zeros, tmp_path / "other")
    assert list((tmp_path / "other").iterdir()) == []


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flip(data: bytes) -> bytes:
    middle = data.index(b"PK\x01\x02") - 10
    return data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]


def wipe(data: bytes) -> bytes:
    return data[:0]


@pytest.mark.parametrize("damage", [cut, flip, wipe])
def test_a_damaged_archive_is_refused(tmp_path: Path, damage: Callable[[bytes], bytes]):
    whole = archive(tmp_path / "b.zip", ("a", "".join(map(str, range(5000))), FILE))
    whole.write_bytes(damage(whole.read_bytes()))
    (tmp_path / "work").mkdir()
    with pytest.raises(Invalid, match="damaged"):
        bundle.unpack(whole, tmp_path / "work")


def test_a_directory_is_copied_and_links_in_it_are_refused(tmp_path: Path):
    source = tmp_path / "source"
    (source / "a").mkdir(parents=True)
    (source / "a" / "file").write_text("x")
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    bundle.unpack(source, tmp_path / "one")
    assert (tmp_path / "one" / "a" / "file").read_text() == "x"
    (source / "link").symlink_to("/etc/passwd")
    with pytest.raises(Invalid, match="neither a file nor a directory"):
        bundle.unpack(source, tmp_path / "two")
    assert list((tmp_path / "two").iterdir()) == []


async def test_a_bundle_is_the_working_directory_and_its_modules_can_be_imported(
    runtime: ProcessRuntime, orders: Orders, tmp_path: Path
):
    zipped = archive(
        tmp_path / "b.zip", ("mine.py", "ANSWER = 42", FILE), ("bin/run", "#!/bin/sh\nls", PROGRAM)
    )

    def uses_it() -> object:
        return importlib.import_module("mine").ANSWER

    assert value_of(await run(runtime, replace(orders.call(uses_it), bundle=zipped))) == 42
    order = replace(orders.command("bin/run"), bundle=zipped)
    assert (await run(runtime, order)).well
    assert log_of(runtime, order) == "bin\nmine.py\n"


async def test_an_attempt_with_a_hostile_bundle_is_not_started(
    runtime: ProcessRuntime, orders: Orders, tmp_path: Path
):
    zipped = archive(tmp_path / "b.zip", *HOSTILE["climbs out"])
    end = await run(runtime, replace(orders.command("true"), bundle=zipped))
    assert end.kind is ExitKind.NOT_STARTED
    assert "leads out of the working directory" in end.message


def wheel(folder: Path, value: str) -> str:
    """A package that needs no index to install."""
    path = folder / f"tiny_{value}-1.0-py3-none-any.whl"
    entries = {
        f"tiny_{value}.py": f"VALUE = {value!r}",
        f"tiny_{value}-1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: tiny-{value}\nVersion: 1.0\n",
        f"tiny_{value}-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"tiny_{value}-1.0.dist-info/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as out:
        for name, text in entries.items():
            out.writestr(name, text)
    return f"tiny-{value} @ {path.as_uri()}"


async def test_packages_are_installed_once_for_all_who_ask(
    runtime: ProcessRuntime, orders: Orders, root: Path, tmp_path: Path
):
    environment = TaskEnvironment(packages=(wheel(tmp_path, "one"),))

    def uses_it() -> object:
        return importlib.import_module("tiny_one").VALUE

    calls = [replace(orders.call(uses_it), environment=environment) for _ in range(2)]
    program = replace(
        orders.command("python", "-c", "import tiny_one; print(tiny_one.VALUE)"), environment=environment
    )
    for order in (*calls, program):
        await runtime.start(order)
    for order in calls:
        assert value_of(await ended(runtime, order.attempt)) == "one"
    assert (await ended(runtime, program.attempt)).well
    logs = [log_of(runtime, order) for order in (*calls, program)]
    assert sum("Successfully installed" in text for text in logs) == 1
    assert logs[2].endswith("one\n")
    assert len([path for path in (root / "packages").iterdir() if path.is_dir()]) == 1


async def test_a_failed_installation_is_told_with_its_last_lines_and_not_kept(
    runtime: ProcessRuntime, orders: Orders, root: Path, tmp_path: Path
):
    wanted = wheel(tmp_path, "two")
    file = tmp_path / "tiny_two-1.0-py3-none-any.whl"
    whole = file.read_bytes()
    file.write_bytes(b"broken")
    order = replace(orders.command("true"), environment=TaskEnvironment(packages=(wanted,)))
    end = await run(runtime, order)
    assert end.kind is ExitKind.NOT_STARTED
    assert "could not be installed" in end.message
    assert "ERROR" in end.message
    assert not [path for path in (root / "packages").iterdir() if path.is_dir()]
    file.write_bytes(whole)
    assert (await run(runtime, replace(orders.command("true"), environment=order.environment))).well


async def test_setup_runs_in_the_working_directory_and_is_seen_as_building(
    runtime: ProcessRuntime, orders: Orders
):
    order = replace(
        # Each part long enough to be told apart from the next.
        orders.shell("sleep 0.2; cat made"),
        environment=TaskEnvironment(setup=("echo preparing", "sleep 0.2", "echo made > made")),
    )
    phases = list[Phase]()
    async with aclosing(runtime.changes()) as changes:
        await runtime.start(order)
        async for batch in changes:
            phases += [seen.phase for seen in batch]
            if phases[-1:] == [Phase.ENDED]:
                break
    # A phase may be told again; none is left out, and none comes back.
    assert [phase for phase, _ in groupby(phases)] == [Phase.BUILDING, Phase.RUNNING, Phase.ENDED]
    assert log_of(runtime, order) == "preparing\nmade\n"


# What is dear is made once and kept; a pause lets whoever does not wait for it run into it.
ONCE = "test -e $IRIS_ENV_DIR/made || { echo building; sleep 0.2; touch $IRIS_ENV_DIR/made; }"


async def test_what_setup_keeps_is_made_once_for_all_who_ask_for_the_same(
    runtime: ProcessRuntime, orders: Orders
):
    same = [
        replace(orders.shell("ls $IRIS_ENV_DIR"), environment=TaskEnvironment(setup=(ONCE,)))
        for _ in range(3)
    ]
    other = replace(orders.shell("ls $IRIS_ENV_DIR"), environment=TaskEnvironment(setup=(ONCE, "true")))
    for order in (*same, other):
        await runtime.start(order)
    for order in (*same, other):
        assert (await ended(runtime, order.attempt)).well
    assert sorted(log_of(runtime, order) for order in same) == ["building\nmade\n", "made\n", "made\n"]
    assert log_of(runtime, other) == "building\nmade\n"


async def test_a_setup_that_failed_is_begun_alone_again(
    runtime: ProcessRuntime, orders: Orders, tmp_path: Path
):
    setup = (f"{ONCE}; test -e {tmp_path}/right",)
    first = replace(orders.command("true"), environment=TaskEnvironment(setup=setup))
    assert (await run(runtime, first)).kind is ExitKind.NOT_STARTED
    (tmp_path / "right").touch()
    second = replace(orders.shell("ls $IRIS_ENV_DIR"), environment=TaskEnvironment(setup=setup))
    assert (await run(runtime, second)).well
    assert log_of(runtime, second) == "made\n"


async def test_a_failed_setup_is_not_started_and_shows_its_last_lines(
    runtime: ProcessRuntime, orders: Orders
):
    order = replace(
        orders.command("true"),
        environment=TaskEnvironment(setup=("echo so far so good; exit 3", "echo never")),
    )
    end = await run(runtime, order)
    assert end.kind is ExitKind.NOT_STARTED
    assert "ended with 3" in end.message
    assert "so far so good" in end.message
    assert "never" not in log_of(runtime, order)


async def test_a_build_can_be_stopped(runtime: ProcessRuntime, orders: Orders):
    order = replace(
        orders.shell("echo never"),
        environment=TaskEnvironment(setup=("trap '' TERM; echo building; while :; do sleep 1000; done",)),
    )
    await runtime.start(order)
    await written(runtime.log(order.attempt), "building")
    with anyio.fail_after(60):
        await runtime.stop(order.attempt, Duration.of(ms=50))
        assert (await ended(runtime, order.attempt)).kind is ExitKind.STOPPED
    assert log_of(runtime, order) == "building\n"


def importing(name: str) -> Callable[[], object]:
    def task() -> object:
        found = importlib.util.find_spec(name)
        return found and importlib.import_module(name).VALUE

    return task


PRINTS = "import importlib.util as u; print([n for n in ('tiny_three', 'tiny_four') if u.find_spec(n)])"


async def test_what_setup_installs_is_for_the_tasks_of_that_environment_alone(
    runtime: ProcessRuntime, orders: Orders, tmp_path: Path
):
    three, four = (wheel(tmp_path, name).partition("@ ")[2] for name in ("three", "four"))
    first = TaskEnvironment(setup=(f"pip install {three}",))
    second = TaskEnvironment(setup=(f"python3 -m pip install {four}",))
    plain = TaskEnvironment()
    for environment, wanted in ((first, "three"), (second, "four"), (plain, "")):
        for name in ("three", "four"):
            order = replace(orders.call(importing(f"tiny_{name}")), environment=environment)
            assert value_of(await run(runtime, order)) == (name if name == wanted else None)
        program = replace(orders.command("python", "-c", PRINTS), environment=environment)
        assert (await run(runtime, program)).well
        assert log_of(runtime, program).endswith(f"{[f'tiny_{wanted}'] if wanted else []}\n")
    # The worker's own Python, which also runs iris, has neither.
    assert not any(importlib.util.find_spec(f"tiny_{name}") for name in ("three", "four"))


async def test_the_python_of_an_environment_finds_what_the_worker_has(
    runtime: ProcessRuntime, orders: Orders
):
    order = replace(
        orders.command("python", "-c", "import sys, msgspec, neorion; print(sys.prefix != sys.base_prefix)"),
        environment=TaskEnvironment(setup=('test "$(command -v python)" = "$VIRTUAL_ENV/bin/python"',)),
    )
    end = await run(runtime, order)
    assert end.well, end
    assert log_of(runtime, order) == "True\n"


async def test_bundles_that_name_other_packages_have_other_environments(
    runtime: ProcessRuntime, orders: Orders, tmp_path: Path
):
    environment = TaskEnvironment(setup=("pip install -r wanted/needs.txt",))
    urls = {name: wheel(tmp_path, name).partition("@ ")[2] for name in ("five", "six")}
    for name, url in urls.items():
        bundled = archive(
            tmp_path / f"{name}.zip", ("wanted/needs.txt", url, FILE), ("main.py", f"# {name}", FILE)
        )
        for other in urls:
            order = replace(orders.call(importing(f"tiny_{other}")), environment=environment, bundle=bundled)
            assert value_of(await run(runtime, order)) == (name if name == other else None)


async def test_other_code_beside_the_same_packages_has_the_same_environment(
    runtime: ProcessRuntime, orders: Orders, tmp_path: Path
):
    environment = TaskEnvironment(setup=("cat requirements.txt",))
    kept: list[str] = []
    for code in ("1", "2"):
        bundled = archive(
            tmp_path / f"{code}.zip", ("requirements.txt", "same\n", FILE), ("main.py", code, FILE)
        )
        order = replace(orders.shell("echo $IRIS_ENV_DIR"), environment=environment, bundle=bundled)
        assert (await run(runtime, order)).well
        kept.append(log_of(runtime, order))
    assert kept[0] == kept[1]
