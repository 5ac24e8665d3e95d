"""Folders of forgotten attempts are used again, and nobody finds anything of another in them."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from neorion.iris.adapters.runtimes.process.forkserver import dir_cache
from neorion.iris.adapters.runtimes.process.forkserver.dir_cache import AttemptDirCache, sweep
from neorion.iris.adapters.runtimes.process.layout import AttemptDir, RuntimeLayout
from neorion.iris.adapters.runtimes.process.result_file import load
from neorion.iris.adapters.runtimes.process.runtime import ProcessRuntime
from neorion.iris.testing.runtime_waits import ended, written
from tests.iris.runtimes.conftest import Orders

# By then the worker has long swept behind the first of them.
MANY = 100


@pytest.fixture
def files(tmp_path: Path) -> RuntimeLayout:
    found = RuntimeLayout(tmp_path)
    found.make()
    return found


def begin(files: RuntimeLayout, name: str) -> AttemptDir:
    place = files.attempt(name)
    AttemptDirCache(str(files.spare)).make(place)
    return place


def finish(files: RuntimeLayout, place: AttemptDir, *, log: str = "", result: str = "") -> None:
    Path(place.log).write_text(log)
    Path(place.result).write_text(result)
    files.discard(place.home)


def inside(place: AttemptDir) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in Path(place.home).iterdir() if path.name != "work"}


def test_a_folder_is_used_again_and_is_empty(files: RuntimeLayout):
    first = begin(files, "first")
    inode = Path(first.work).stat().st_ino
    finish(files, first, log="some words", result="a value")
    sweep(files)
    second = begin(files, "second")
    assert Path(second.work).stat().st_ino == inode
    assert inside(second) == {"log": 0, "result.unfinished": 0}
    assert list(files.trash.iterdir()) == list(files.spare.iterdir()) == []


def leave_a_file(place: AttemptDir) -> None:
    Path(place.work, "left").touch()


def leave_a_file_beside(place: AttemptDir) -> None:
    Path(place.home, "left").touch()


def close_the_folder(place: AttemptDir) -> None:
    Path(place.work).chmod(0o500)


def close_the_folder_around(place: AttemptDir) -> None:
    Path(place.home).chmod(0)


def close_the_log(place: AttemptDir) -> None:
    Path(place.log).touch()
    Path(place.log).chmod(0o400)


def remove_the_folder(place: AttemptDir) -> None:
    Path(place.work).rmdir()


def point_elsewhere(place: AttemptDir) -> None:
    Path(place.work).rmdir()
    Path(place.work).symlink_to("/")


def refuse(place: AttemptDir) -> None:
    Path(place.refusal).touch()


@pytest.mark.parametrize(
    "change",
    [
        leave_a_file,
        leave_a_file_beside,
        close_the_folder,
        close_the_folder_around,
        close_the_log,
        remove_the_folder,
        point_elsewhere,
        refuse,
    ],
)
def test_a_folder_that_a_task_changed_is_deleted(files: RuntimeLayout, change: Callable[[AttemptDir], None]):
    place = begin(files, "first")
    change(place)
    files.discard(place.home)
    sweep(files)
    assert list(files.trash.iterdir()) == list(files.spare.iterdir()) == []


def test_a_log_that_a_task_gave_another_name_is_left_as_it_is(files: RuntimeLayout, tmp_path: Path):
    place = begin(files, "first")
    Path(place.log).write_text("kept")
    kept = tmp_path / "kept"
    kept.hardlink_to(place.log)
    files.discard(place.home)
    sweep(files)
    assert kept.read_text() == "kept"
    assert list(files.spare.iterdir()) == []


def test_no_more_than_are_needed_are_kept(files: RuntimeLayout, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dir_cache, "SPARES_MAX", 2)
    for number in range(5):
        finish(files, begin(files, f"a{number}"))
    sweep(files)
    assert len(list(files.spare.iterdir())) == 2
    assert list(files.trash.iterdir()) == []


def test_a_full_disk_leaves_no_half_a_folder(files: RuntimeLayout, monkeypatch: pytest.MonkeyPatch):
    mkdir = os.mkdir

    def full(path: str, mode: int) -> None:
        if path.endswith("/work"):
            raise OSError(28, os.strerror(28))
        mkdir(path, mode)

    monkeypatch.setattr(os, "mkdir", full)
    with pytest.raises(OSError, match="No space"):
        begin(files, "first")
    assert list(files.attempts.iterdir()) == []


def test_a_full_disk_gets_its_room_back(files: RuntimeLayout, monkeypatch: pytest.MonkeyPatch):
    place = begin(files, "first")

    def full(source: str, target: str) -> None:
        raise OSError(28, os.strerror(28), source, target)

    monkeypatch.setattr(os, "rename", full)
    finish(files, place, log="some words")
    assert list(files.attempts.iterdir()) == []


@pytest.mark.anyio
async def test_tasks_share_folders_one_after_the_other(runtime: ProcessRuntime, orders: Orders):
    def look_around() -> tuple[int, list[str]]:
        sys.stdout.write("one line\n")
        return Path().stat().st_ino, [path.name for path in Path().iterdir()]

    folders = set[int]()
    for _ in range(MANY):
        order = orders.call(look_around)
        await runtime.start(order)
        end = await ended(runtime, order.attempt)
        assert end.result is not None
        folder, found = cast("tuple[int, list[str]]", load(end.result))
        assert (found, runtime.log(order.attempt).read_text()) == ([], "one line\n")
        folders.add(folder)
        await runtime.forget(order.attempt)
        assert not runtime.log(order.attempt).exists()
    assert len(folders) < MANY


@pytest.mark.anyio
async def test_what_a_warm_process_left_running_writes_into_nobody_elses_log(
    runtime: ProcessRuntime, orders: Orders, tmp_path: Path
):
    def leave_a_writer() -> None:
        script = f"read go < {go}; echo from the one before; echo done > {done}"
        subprocess.Popen(["/bin/sh", "-c", script])

    go, done = tmp_path / "go", tmp_path / "done"
    os.mkfifo(go)
    done.touch()
    first = orders.call(leave_a_writer, pool="warm")
    await runtime.start(first)
    await ended(runtime, first.attempt)
    await runtime.forget(first.attempt)
    others = [orders.shell("echo mine") for _ in range(MANY)]
    for order in others:
        await runtime.start(order)
        await ended(runtime, order.attempt)
    go.write_text("go\n")
    await written(done, "done")
    assert {runtime.log(order.attempt).read_text() for order in others} == {"mine\n"}
