"""What a cluster does to the machine, and that it can always be found and taken back."""

import os
import resource
import signal
import sys
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neorion.drydock.host import (
    Component,
    HostChange,
    UndoLog,
    alive,
    end,
    locked,
    marked_clusters,
    running,
    start,
)

pytestmark = pytest.mark.anyio

WAITS = (sys.executable, "-c", "import signal; signal.pause()")
# A child that would outlive its parent, in a session of its own.
BEARS = (
    sys.executable,
    "-c",
    "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import signal; signal.pause()'], start_new_session=True)",
)


async def test_a_process_is_found_by_the_cluster_it_belongs_to(tmp_path: Path):
    pid = start(tmp_path, Component("waits", WAITS), tmp_path / "log")
    try:
        assert [(process.pid, process.part) for process in running(tmp_path)] == [(pid, "waits")]
        assert running(tmp_path / "other") == []
        assert running(tmp_path, "another part") == []
        assert str(tmp_path) in marked_clusters()
    finally:
        await end(tmp_path)
    assert running(tmp_path) == []
    assert not alive(pid)


async def test_the_end_of_a_part_is_the_end_of_what_it_started(tmp_path: Path):
    start(tmp_path, Component("bears", BEARS), tmp_path / "log")
    with anyio.fail_after(60):
        while len(running(tmp_path, "bears")) < 2:
            await anyio.lowlevel.checkpoint()
    await end(tmp_path, "bears")
    assert running(tmp_path) == []


async def test_ending_one_part_leaves_the_others(tmp_path: Path):
    start(tmp_path, Component("one", WAITS), tmp_path / "log")
    two = start(tmp_path, Component("two", WAITS), tmp_path / "log")
    await end(tmp_path, "one", signal.SIGTERM)
    assert [process.pid for process in running(tmp_path)] == [two]
    await end(tmp_path)


def test_a_part_says_its_words_into_its_log(tmp_path: Path):
    pid = start(
        tmp_path, Component("speaks", ("/bin/sh", "-c", 'echo "$WORD"'), {"WORD": "hello"}), tmp_path / "log"
    )
    os.waitpid(pid, 0)
    assert (tmp_path / "log").read_text() == "hello\n"


async def test_only_one_holds_a_folder_and_none_a_removed_one(tmp_path: Path):
    folder, order = tmp_path / "it", list[str]()

    async def second() -> None:
        async with locked(folder):
            order.append("second")
            assert folder.exists()

    async with anyio.create_task_group() as tasks, locked(folder):
        tasks.start_soon(second)
        await anyio.wait_all_tasks_blocked()
        order.append("first")
        folder.rmdir()
    assert order == ["first", "second"]


EFFECTS = st.builds(
    HostChange,
    st.sampled_from(["link", "namespace", "folder"]),
    st.text(alphabet="abc /0", min_size=1).map(str.strip),
).filter(lambda effect: bool(effect.name))


@given(st.lists(EFFECTS, max_size=8), st.integers(0, 8))
async def test_whatever_was_recorded_is_undone_newest_first_and_once(
    tmp_path_factory: pytest.TempPathFactory, effects: list[HostChange], killed_after: int
):
    """A kill between two undoings loses none of them and repeats one at most."""
    ledger = UndoLog(tmp_path_factory.mktemp("ledger"))
    for effect in effects:
        ledger.record(effect.kind, effect.name)
    undone = list[HostChange]()

    def undo(kind: str):
        async def act(name: str) -> None:
            undone.append(HostChange(kind, name))
            if len(undone) == killed_after:
                raise KeyboardInterrupt

        return act

    undos = {kind: undo(kind) for kind in ("link", "namespace", "folder")}
    try:
        await ledger.undo_all(undos)
    except KeyboardInterrupt:
        await ledger.undo_all(undos)
    assert ledger.effects() == []
    assert set(undone) == set(effects)
    distinct = list(dict.fromkeys(effects))
    assert list(dict.fromkeys(undone)) == distinct[::-1]
    assert len(undone) <= len(distinct) + 1


async def test_a_full_disk_keeps_nothing_from_being_undone(tmp_path: Path):
    ledger, undone = UndoLog(tmp_path), list[str]()
    for name in ("one", "two", "one", "three"):
        ledger.record("link", name)

    async def undo(name: str) -> None:
        undone.append(name)

    least, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))
    try:
        await ledger.undo_all({"link": undo})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (least, most))
    assert undone == ["three", "two", "one"]
    assert ledger.effects() == []


def test_an_effect_that_cannot_be_written_down_whole_is_not_written_down_at_all(tmp_path: Path):
    ledger = UndoLog(tmp_path)
    ledger.record("link", "one")
    least, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len("link one\nlink t"), most))
    try:
        with pytest.raises(OSError, match="No space left"):
            ledger.record("link", "two")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (least, most))
    assert ledger.effects() == [HostChange("link", "one")]
