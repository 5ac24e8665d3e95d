"""Local cluster: a separate process that outlives the command, recorded in a file.

A pid alone does not identify a process, because pids are reused. The file also contains the start time, and a
process is signalled only through a handle that was opened before the start times were compared.
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

# A controller is ready within two seconds on a slow machine; its first start also creates its store.
START_MOST: Final = Duration.of(seconds=30)
# Tasks have ten seconds to end by themselves.
STOP_MOST: Final = Duration.of(seconds=30)
_POLL_EVERY: Final = Duration.of(ms=50)
_LOG_TAIL_CHARS: Final = 300


@dataclass(frozen=True, slots=True)
class LocalClusterOptions:
    """Options of a local cluster. Port 0 selects a free one."""

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
    """A running local cluster. `began` is its start time in kernel ticks since the boot."""

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
    empty="No cluster runs on this machine.",
)


def default_folder(env: Mapping[str, str]) -> Path:
    home = env.get("XDG_STATE_HOME") or Path(env.get("HOME", "/")) / ".local/state"
    return Path(home) / "neorion" / "iris" / "local"


def found(folder: Path) -> LocalCluster | None:
    """Cluster of this folder, or None if it does not run."""
    try:
        known = LocalCluster(**json.loads(_record(folder).read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return known if _began(known.pid) == known.began else None


async def start(settings: LocalClusterOptions, clock: Clock) -> LocalCluster:
    """Starts a cluster in a new session and waits until it prints its address."""
    folder = settings.folder
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Per process, so that a simultaneous start uses another file.
    output, log = folder / f"address.{os.getpid()}", folder / "log"
    output.write_text("")
    try:
        known = log.stat().st_size if log.exists() else 0
        pid = _spawn([*settings.command, "--log-file", str(log)], output, log)
        cluster = LocalCluster("", pid, _began(pid), str(folder), str(log))
        try:
            cluster = replace(cluster, address=await _read_address(pid, output, (log, known), clock))
        except BaseException:
            # Also after Ctrl-C: the cluster has no record yet, so it could not be stopped later.
            if _began(pid):
                with anyio.CancelScope(shield=True):
                    _end(cluster)
                    await _end_slices(folder, clock)
            raise
    finally:
        output.unlink()
    partial = _record(folder).with_suffix(".part")
    partial.write_text(json.dumps(asdict(cluster)))
    partial.replace(_record(folder))
    return cluster


async def _read_address(pid: int, output: Path, log_from: tuple[Path, int], clock: Clock) -> str:
    """First line of a new cluster's output. `log_from` is its log, and the size that the log had before the start."""
    until = clock.monotonic() + START_MOST.seconds
    log = log_from[0]
    while not (address := output.read_text()).endswith("\n"):
        if not _began(pid):
            raise _ended(*log_from)
        if clock.monotonic() > until:
            raise Deadline("iris.cluster_slow", "The cluster did not start in time.", hint=f"See {log}.")
        await clock.sleep(_POLL_EVERY)
    return address.strip()


def _ended(log: Path, known: int) -> Terminal:
    text = log.read_bytes()
    # If a full log was rotated meanwhile, all of this one is of this start.
    text = text[known if known <= len(text) else 0 :].decode(errors="replace")
    # The format in which our programs print a fatal error.
    fields = dict(line.split(": ", 1) for line in text.splitlines() if line.startswith(("error: ", "hint: ")))
    return Terminal(
        "iris.cluster_start",
        f"The cluster ended while it started: {fields.get('error') or text[-_LOG_TAIL_CHARS:].strip()}",
        hint=fields.get("hint") or f"See {log}.",
    )


def _spawn(argv: list[str], out: Path, log: Path) -> int:
    """Starts a process that outlives this one, without its terminal and its streams."""
    write = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(out), write, 0o600),
        (os.POSIX_SPAWN_OPEN, 2, str(log), write, 0o600),
    ]
    return os.posix_spawn(argv[0], argv, os.environ, file_actions=files, setsid=True)


def watch_over(settings: LocalClusterOptions, show: Callable[[LocalCluster], None]) -> None:
    """Runs a cluster until this process ends: the end of its standard input stops it."""
    process = subprocess.Popen(  # noqa: S603 -- our own program
        [*settings.command, "--leash"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Ctrl-C interrupts only this process, which then stops the cluster.
        start_new_session=True,
    )
    assert process.stdout is not None  # noqa: S101 -- a pipe was asked for
    try:
        address = process.stdout.readline().decode().strip()
        if address:
            show(LocalCluster(address, process.pid, _began(process.pid), str(settings.folder), ""))
        process.wait()
    finally:
        process.terminate()
        process.communicate()
    raise Terminal(
        "iris.cluster_start", "The cluster ended unexpectedly.", hint="Read the end of its log above."
    )


async def stop(folder: Path, clock: Clock) -> LocalCluster | None:
    """Stops the controller, then the workers, which outlive it. Returns the cluster that was running."""
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
                f"Process {cluster.pid} of the cluster has not ended after SIGTERM.",
                hint=f"See {cluster.log}, and run the same command again.",
            )
    finally:
        os.close(handle)


def _record(folder: Path) -> Path:
    return folder / "cluster.json"


def _began(pid: int) -> int:
    """Start time of a process; 0 if it does not exist."""
    try:
        # The program's name is in parentheses and may contain any character.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] == "Z" else int(fields[19])
