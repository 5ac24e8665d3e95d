"""A cluster on this machine: a process of its own that outlives the command, known by a file it left.

A number alone does not name a process: numbers are used again. The file says also when that process began, and a
process is only ever signalled through a handle that was opened before the two were compared.
"""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import anyio

from neorion.iris.adapters.platforms.local import LocalPlatform, LocalSettings, worker_command
from neorion.keel.base import Deadline, Duration, Terminal
from neorion.keel.cli.kit import Column, Table
from neorion.keel.clock import Clock

# A controller answers within two seconds on a slow machine; its first start also makes its store.
START_MOST: Final = Duration.of(seconds=30)
# Tasks are given ten seconds to end by themselves.
STOP_MOST: Final = Duration.of(seconds=30)
_LOOK_EVERY: Final = Duration.of(ms=50)
_LOG_TAIL_CHARS: Final = 300


@dataclass(frozen=True, slots=True)
class LocalClusterOptions:
    """A cluster to be started here. Port 0 takes any that is free."""

    folder: Path
    port: int
    workers: int
    auth: bool

    @property
    def command(self) -> list[str]:
        options = {"--folder": self.folder, "--port": self.port, "--workers": self.workers}
        return [
            sys.executable,
            *("-P", "-m", "neorion.iris", "local"),
            *(text for name, value in options.items() for text in (name, str(value))),
            "--auth" if self.auth else "--no-auth",
        ]


@dataclass(frozen=True, slots=True)
class LocalCluster:
    """A cluster that was started here. `began` is in ticks of the kernel since it booted."""

    address: str
    pid: int
    began: int
    folder: str
    log: str


LOCAL: Final[Table[LocalCluster]] = Table(
    (
        Column("ADDRESS", lambda it: it.address),
        Column("PID", lambda it: it.pid),
        Column("FOLDER", lambda it: it.folder),
        Column("LOG", lambda it: it.log),
    ),
    name=lambda it: it.address,
    empty="No cluster runs here.",
)


def default_folder(env: Mapping[str, str]) -> Path:
    home = env.get("XDG_STATE_HOME") or Path(env.get("HOME", "/")) / ".local/state"
    return Path(home) / "neorion" / "iris" / "local"


def found(folder: Path) -> LocalCluster | None:
    """The cluster of this folder, if it runs."""
    try:
        known = LocalCluster(**json.loads(_record(folder).read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return known if _began(known.pid) == known.began else None


async def start(wanted: LocalClusterOptions, clock: Clock) -> LocalCluster:
    """Starts a cluster in a session of its own and waits until it says where it answers."""
    folder = wanted.folder
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Of this start alone: another one beside it must not be taken for it.
    said, log = folder / f"address.{os.getpid()}", folder / "log"
    said.write_text("")
    try:
        known = log.stat().st_size if log.exists() else 0
        pid = _spawn([*wanted.command, "--log-file", str(log)], said, log)
        cluster = LocalCluster("", pid, _began(pid), str(folder), str(log))
        try:
            cluster = replace(cluster, address=await _said(pid, said, (log, known), clock))
        except BaseException:
            # Ctrl-C too. It stands in no record yet: nobody could end it later.
            if _began(pid):
                with anyio.CancelScope(shield=True):
                    _end(cluster)
                    await _end_slices(folder, clock)
            raise
    finally:
        said.unlink()
    partial = _record(folder).with_suffix(".part")
    partial.write_text(json.dumps(asdict(cluster)))
    partial.replace(_record(folder))
    return cluster


async def _said(pid: int, said: Path, words: tuple[Path, int], clock: Clock) -> str:
    """The first line a new cluster writes. `words` is its log, and how much of that is of others before it."""
    until = clock.monotonic() + START_MOST.seconds
    log = words[0]
    while not (address := said.read_text()).endswith("\n"):
        if not _began(pid):
            raise _ended(*words)
        if clock.monotonic() > until:
            raise Deadline("iris.cluster_slow", "The cluster did not start in time.", hint=f"See {log}.")
        await clock.sleep(_LOOK_EVERY)
    return address.strip()


def _ended(log: Path, known: int) -> Terminal:
    text = log.read_bytes()
    # A full log was set aside meanwhile, and all of this one is of this start.
    text = text[known if known <= len(text) else 0 :].decode(errors="replace")
    # The form in which every program of ours says why it cannot go on.
    told = dict(line.split(": ", 1) for line in text.splitlines() if line.startswith(("error: ", "hint: ")))
    return Terminal(
        "iris.cluster_start",
        f"The cluster ended while it started: {told.get('error') or text[-_LOG_TAIL_CHARS:].strip()}",
        hint=told.get("hint") or f"see {log}",
    )


def _spawn(argv: list[str], out: Path, log: Path) -> int:
    """A process that is to outlive this one: no terminal, no stream of ours."""
    write = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(out), write, 0o600),
        (os.POSIX_SPAWN_OPEN, 2, str(log), write, 0o600),
    ]
    return os.posix_spawn(argv[0], argv, os.environ, file_actions=files, setsid=True)


def watch_over(wanted: LocalClusterOptions, show: Callable[[LocalCluster], None]) -> None:
    """Runs a cluster for as long as this process lives: its standard input is a leash."""
    process = subprocess.Popen(  # noqa: S603 -- our own program
        [*wanted.command, "--leash"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Ctrl-C is for this process, which then ends the other in good order.
        start_new_session=True,
    )
    assert process.stdout is not None  # noqa: S101 -- a pipe was asked for
    try:
        address = process.stdout.readline().decode().strip()
        if address:
            show(LocalCluster(address, process.pid, _began(process.pid), str(wanted.folder), ""))
        process.wait()
    finally:
        process.terminate()
        process.communicate()
    raise Terminal(
        "iris.cluster_start", "The cluster ended by itself.", hint="Read the end of its log above."
    )


async def stop(folder: Path, clock: Clock) -> LocalCluster | None:
    """Ends the controller, then the workers, which outlive it by design; returns what was running."""
    cluster = found(folder)
    if cluster is not None:
        _end(cluster)
    await _end_slices(folder, clock)
    _record(folder).unlink(missing_ok=True)
    return cluster


async def _end_slices(folder: Path, clock: Clock) -> None:
    if (folder / "slices").exists():
        settings = LocalSettings(folder / "slices", "", {})
        async with LocalPlatform(settings, worker_command, clock) as platform:
            await platform.shutdown()


def _end(cluster: LocalCluster) -> None:
    try:
        handle = os.pidfd_open(cluster.pid)
    except ProcessLookupError:
        return
    try:
        if _began(cluster.pid) != cluster.began:
            return
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        if not select.select([handle], [], [], STOP_MOST.seconds)[0]:
            raise Deadline(
                "iris.cluster_stop",
                f"The cluster was told to end, and process {cluster.pid} is still there.",
                hint=f"See {cluster.log}, and run the same command again.",
            )
    finally:
        os.close(handle)


def _record(folder: Path) -> Path:
    return folder / "cluster.json"


def _began(pid: int) -> int:
    """When a process began; 0 if there is none."""
    try:
        # The program's name stands in parentheses and may hold anything: what counts comes after it.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] == "Z" else int(fields[19])
