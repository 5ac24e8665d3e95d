"""The work of `devctl admin sessions`."""

import asyncio
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec import Struct

from neorion.devservers.cli.humanize import age, moment
from neorion.devservers.cli.options import ClusterSelector
from neorion.devservers.cli.session import run_with_api
from neorion.devservers.decide.recording import parts
from neorion.devservers.model.kube_types import SESSIONS, DevServerSession
from neorion.devservers.model.session import SESSION_USER_LABEL
from neorion.devservers.model.tenancy import BASTION_ACCOUNT, SYSTEM_NAMESPACE
from neorion.keel.base import Duration, Instant, Invalid, NotFound, did_you_mean
from neorion.keel.cli.kit import Column, Output, Table, confirm
from neorion.keel.clock import SystemClock
from neorion.keel.kube import (
    ALL,
    Added,
    Bookmark,
    Deleted,
    Modified,
    Selector,
    UndecodableObject,
    UnknownKind,
)
from neorion.keel.kube.client import Client
from neorion.keel.kube.core import POD
from neorion.keel.kube.streams import ContainerRef, OutputStream, execute

_RECORDINGS: Final = "/var/log/devservers/recordings"
_NAME: Final = re.compile(r"ssh-[a-z0-9]{1,40}(-[0-9]{1,6})?")
_CAT: Final = f'for one in "{_RECORDINGS}/$1.cast" "{_RECORDINGS}/$1"-*.cast; do [ -f "$one" ] && cat "$one"; done; exit 0'


class SessionRecord(Struct, frozen=True):
    """One open session."""

    name: str
    user: str
    server: str
    source: str
    client: str
    key: str
    replica: str
    since: str

    @classmethod
    def of(cls, session: DevServerSession) -> "SessionRecord":
        spec = session.spec
        return cls(
            session.meta.name,
            spec.user,
            spec.server,
            spec.source,
            spec.client,
            spec.key,
            spec.replica,
            spec.since,
        )


@dataclass(frozen=True, slots=True)
class KillRequest:
    """The sessions to close."""

    names: tuple[str, ...]
    user: str
    yes: bool
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Pace:
    """The speed of a replay, and its longest pause in seconds."""

    speed: float
    max_pause: float


def _table(now: Instant) -> Table[SessionRecord]:
    return Table(
        (
            Column("SESSION", lambda one: one.name),
            Column("USER", lambda one: one.user),
            Column("SERVER", lambda one: one.server or "(console)"),
            Column("SOURCE", lambda one: one.source, priority=1),
            Column("AGE", lambda one: age(now, moment(one.since)), right=True),
            Column("REPLICA", lambda one: one.replica, priority=2),
            Column("CLIENT", lambda one: one.client, wide=True),
            Column("KEY", lambda one: one.key, wide=True),
        ),
        name=lambda one: one.name,
        empty="No session is open.",
    )


async def show_all(client: Client, out: Output, user: str) -> None:
    records = [SessionRecord.of(one) for one in await _sessions(client, user)]
    out.show(sorted(records, key=lambda one: one.since), _table(client.transport.clock.now()))


async def watch(client: Client, out: Output, user: str) -> None:
    """One line for each session that opens, and a sentence for each that closes."""
    emit = out.watch(_table(client.transport.clock.now()))
    async with client.watch(SESSIONS, SYSTEM_NAMESPACE, _of(user)) as changes:
        async for change in changes:
            match change:
                case Added(object=session) | Modified(object=session):
                    emit(SessionRecord.of(session))
                case Deleted(object=session):
                    out.say(f"{session.meta.name} of {session.spec.user} is closed.")
                case UndecodableObject(error=error):
                    raise error
                case Bookmark():
                    pass


async def kill(client: Client, out: Output, request: KillRequest) -> None:
    if bool(request.names) == bool(request.user):
        raise Invalid(
            "devservers.sessions_to_kill",
            "The sessions to close are not clear.",
            hint="Name sessions, or give --user USER for all of a user.",
        )
    found = {one.meta.name: one for one in await _sessions(client, request.user)}
    names = request.names or tuple(sorted(found))
    for name in names:
        if name not in found:
            raise NotFound(
                "devservers.no_session",
                f'There is no session "{name}".',
                hint=did_you_mean(name, found) or "List them with devctl admin sessions list.",
            )
    listed = ", ".join(f"{name} of {found[name].spec.user}" for name in names)
    if not names or request.dry_run:
        out.say(f"Would close {listed}." if names else f"{request.user} has no open session.")
        return
    confirm(f"Close {listed}?", yes=request.yes)
    for name in names:
        await client.delete(SESSIONS, name, SYSTEM_NAMESPACE)
        out.say(f"{name} is closed.")


async def replay(client: Client, name: str, pace: Pace) -> None:
    if not _NAME.fullmatch(name):
        raise Invalid(
            "devservers.session_name",
            f'"{name[:80]}" is not the name of a session, and there is no such file.',
            hint="Take one from devctl admin audit search FILE --event session-end.",
        )
    for pod in (await client.list(POD, SYSTEM_NAMESPACE, Selector(labels=f"app={BASTION_ACCOUNT}"))).items:
        found = await _read(client, ContainerRef(pod.meta.name, SYSTEM_NAMESPACE, "bastion"), name)
        if found:
            await _play(found.splitlines(), pace)
            return
    raise NotFound(
        "devservers.no_recording",
        f"No replica of the bastion has a recording of {name}.",
        hint="Check that the session had a terminal and is not older than the retention.",
    )


async def _read(client: Client, container: ContainerRef, name: str) -> bytes:
    content = bytearray()
    async with execute(client, container, ["/bin/sh", "-c", _CAT, "sh", name]) as running:
        async for output in running:
            if output.stream is OutputStream.STDOUT:
                content += output.data
    return bytes(content)


def recording_file(text: str) -> Path | None:
    file = Path(text)
    return file if file.is_file() else None


def play_file(file: Path, pace: Pace) -> None:
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise Invalid(
            "devservers.recording", f"{file} cannot be read: {error.strerror}.", hint="Check its permissions."
        ) from None
    asyncio.run(_play(lines, pace))


async def _play(lines: Iterable[bytes], pace: Pace) -> None:
    clock, paused = SystemClock(), sys.stdout.isatty()
    for part in parts(lines):
        pause = min(part.pause_s / pace.speed, pace.max_pause)
        if paused and pause > 0:
            await clock.sleep(Duration.of(seconds=pause))
        sys.stdout.write(part.text)
        sys.stdout.flush()


def _of(user: str) -> Selector:
    return Selector(labels=f"{SESSION_USER_LABEL}={user}") if user else ALL


async def _sessions(client: Client, user: str) -> list[DevServerSession]:
    try:
        return list((await client.list(SESSIONS, SYSTEM_NAMESPACE, _of(user))).items)
    except UnknownKind:
        raise NotFound(
            "devservers.no_bastion",
            "This cluster has no SSH bastion that shows its sessions.",
            hint="Install or upgrade it with devctl install.",
        ) from None


def list_command(out: Output, where: ClusterSelector, *, of_user: str) -> None:
    run_with_api(out, where, lambda fleet: show_all(fleet.client, out, of_user))


def watch_command(out: Output, where: ClusterSelector, *, of_user: str) -> None:
    run_with_api(out, where, lambda fleet: watch(fleet.client, out, of_user))


def kill_command(
    out: Output, names: tuple[str, ...], where: ClusterSelector, *, of_user: str, yes: bool, dry_run: bool
) -> None:
    request = KillRequest(names, of_user, yes, dry_run)
    run_with_api(out, where, lambda fleet: kill(fleet.client, out, request))


def replay_command(
    out: Output, recording: str, where: ClusterSelector, *, speed: float, max_pause: float
) -> None:
    pace = Pace(speed, max_pause)
    local = recording_file(recording)
    if local is not None:
        play_file(local, pace)
    else:
        run_with_api(out, where, lambda fleet: replay(fleet.client, recording, pace))
