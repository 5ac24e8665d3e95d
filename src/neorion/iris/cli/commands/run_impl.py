"""Implementation of `iris run`: packs, submits, follows, and exits with the exit code of the command."""

import signal
from collections.abc import AsyncIterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypedDict, Unpack

import anyio
from anyio.abc import TaskGroup

from neorion.iris.cli import env_file
from neorion.iris.cli.exit_status import exit_code, why
from neorion.iris.cli.humanize import amounts, resources, size
from neorion.iris.cli.log_follower import TASKS_MAX, JobFollower
from neorion.iris.cli.log_format import Show, shown
from neorion.iris.cli.session import ask
from neorion.iris.client import AsyncIrisClient, Options
from neorion.iris.client.blob_transfer import PART_BYTES
from neorion.iris.client.bundle import Bundle, bundle
from neorion.iris.client.job_names import generate_job_name
from neorion.iris.client.options import BlobPayload, spec_of
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.base import Invalid, NotFound
from neorion.keel.cli import Exit
from neorion.keel.cli.kit import Column, Output, Table
from neorion.keel.cli.kit.progress import progress
from neorion.keel.clock import SystemClock, SystemIds

# An offset past every end, so that the response contains a blob's size and no bytes.
_PAST_THE_END: Final = 2**62


class RunOptions(TypedDict):
    """Options of `iris run`."""

    name: str | None
    gpu: str | None
    cpu: str
    memory: str
    disk: str | None
    replicas: int
    gang: str | None
    env: tuple[str, ...]
    env_file: tuple[Path, ...]
    require: tuple[str, ...]
    prefer: tuple[str, ...]
    spread: str | None
    priority: str | None
    retries: int | None
    preemption_retries: int | None
    max_failed_tasks: int
    timeout: str | None
    scheduling_timeout: str | None
    ports: tuple[str, ...]
    packages: tuple[str, ...]
    setup: tuple[str, ...]
    bundle: bool
    exclude: tuple[str, ...]
    key: str | None
    detach: bool
    dry_run: bool


@dataclass(frozen=True, slots=True)
class SubmittedRecord:
    """A submitted job, or one that a dry run would submit."""

    name: str
    id: str
    command: list[str]
    replicas: int
    resources: dict[str, object]
    bundle: str
    bundle_files: int
    bundle_bytes: int


_SUBMITTED: Final[Table[SubmittedRecord]] = Table(
    (
        Column("JOB", lambda it: it.name),
        Column("ID", lambda it: it.id),
        Column("COMMAND", lambda it: " ".join(it.command)),
        Column("TASKS", lambda it: it.replicas),
        Column("RESOURCES", lambda it: resources(it.resources)),
        Column("BUNDLE", lambda it: f"{size(it.bundle_bytes)}, files: {it.bundle_files}"),
    ),
    name=lambda it: it.name,
)


async def run(client: AsyncIrisClient, out: Output, command: Sequence[str], settings: RunOptions) -> int:
    # First, because packing a folder takes longer than a check of the options.
    spec = _spec(client, command, settings)
    packed = bundle(Path.cwd(), settings["exclude"]) if settings["bundle"] else Bundle(b"", "", 0)
    if spec.environment is not None:
        spec.environment.bundle = packed.digest
    request = pb.SubmitRequest(
        spec=spec, key=settings["key"] or SystemIds().secret(), dry_run=settings["dry_run"]
    )
    if packed.digest and not settings["dry_run"]:
        await _send(client, out, packed, request)
    if settings["dry_run"] or settings["detach"]:
        answer = await client.calls.submit(request)
        out.say("The job would be accepted." if settings["dry_run"] else f"submitted {answer.name}")
        out.show_one(_submitted(answer, spec, packed), _SUBMITTED)
        return Exit.OK
    # From here on, signals cancel the job.
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        return await _AttachedRun(client, out, request).run(spec.replicas, signals)


class _AttachedRun:
    """Follower of a job until its end. The first signal cancels the job, a second one stops following it."""

    def __init__(self, client: AsyncIrisClient, out: Output, request: pb.SubmitRequest) -> None:
        self._client = client
        self._out = out
        self._request = request
        self._caught: list[int] = []
        # Set after the submission.
        self._following: JobFollower | None = None

    async def run(self, replicas: int, signals: AsyncIterable[signal.Signals]) -> int:
        ended = pb.Job()
        if replicas > TASKS_MAX:
            self._out.warn(
                f"Only the output of the first {TASKS_MAX} tasks is shown. See others with: iris job logs --task"
            )
        try:
            with shown(self._out, several=replicas > 1) as show:
                async with anyio.create_task_group() as group:
                    group.start_soon(self._listen, signals, group)
                    ended = await self._follow(show, group)
                    group.cancel_scope.cancel()
        except* BrokenPipeError:
            # A local command would end with its next output.
            self._caught[:] = [signal.SIGPIPE]
            if self._following is not None:
                await self._following.cancel()
        if ended.state not in ("", "succeeded"):
            self._out.say(why(ended).sentence)
        return 128 + self._caught[0] if self._caught else exit_code(ended)

    async def _follow(self, show: Show, group: TaskGroup) -> pb.Job:
        job = await self._client.calls.submit(self._request)
        self._following = JobFollower(self._client, job.id, show, self._out.say, name=job.name)
        self._out.say(f"submitted {job.name} ({job.id})")
        if self._caught:
            group.start_soon(self._cancel)
        return await self._following.run()

    async def _listen(self, signals: AsyncIterable[signal.Signals], group: TaskGroup) -> None:
        async for number in signals:
            if self._caught:
                break
            self._caught.append(number)
            # In another task, because this loop must receive the second signal.
            group.start_soon(self._cancel)
        group.cancel_scope.cancel()

    async def _cancel(self) -> None:
        if self._following is None:
            self._out.say("cancelling it once it is submitted")
        else:
            self._out.say(f"cancelling {self._following.name}")
            await self._following.cancel()


def _spec(client: AsyncIrisClient, command: Sequence[str], settings: RunOptions) -> pb.JobSpec:
    every = {name: settings[name] for name in ("gpu", "cpu", "memory", "disk")}
    options = Options(
        resources={name: amount for name, amount in every.items() if amount is not None},
        env=_variables(settings),
        packages=settings["packages"],
        setup=settings["setup"],
        require=settings["require"],
        prefer=settings["prefer"],
        spread=settings["spread"] or "",
        priority=settings["priority"] or "",
        timeout=settings["timeout"] or 0,
        scheduling_timeout=settings["scheduling_timeout"] or 0,
        max_failed_tasks=settings["max_failed_tasks"],
        ports=settings["ports"],
    )
    if settings["retries"] is not None:
        options["retries"] = settings["retries"]
    if settings["preemption_retries"] is not None:
        options["preemption_retries"] = settings["preemption_retries"]
    spec = spec_of(
        command,
        client.path(
            settings["name"] or generate_job_name(Path(command[0]).name, SystemIds(), settings["key"] or "")
        ),
        options,
        BlobPayload(),
    )
    spec.replicas = settings["replicas"]
    spec.gang = settings["gang"] or ""
    return spec


def _variables(settings: RunOptions) -> dict[str, str]:
    variables: dict[str, str] = {}
    for path in settings["env_file"]:
        variables |= env_file.variables(path)
    for pair in settings["env"]:
        name, separator, value = pair.partition("=")
        if not separator:
            raise Invalid(
                "iris.variable", f'"{pair}" is not a valid variable.', hint="Write --env KEY=VALUE."
            )
        variables[name] = value
    return variables


async def _send(client: AsyncIrisClient, out: Output, packed: Bundle, request: pb.SubmitRequest) -> None:
    """Uploads the bundle unless the controller has it or would refuse the job."""
    summary = f"bundle of {size(len(packed.body))}, files: {packed.files}"
    try:
        await client.calls.get_blob(pb.GetBlobRequest(digest=packed.digest, offset=_PAST_THE_END))
    except NotFound:
        await client.check_admission(request)
        await _upload(client, out, packed)
        out.say(f"{summary}, sent")
    else:
        out.say(f"{summary}, unchanged")


async def _upload(client: AsyncIrisClient, out: Output, packed: Bundle) -> None:
    if len(packed.body) <= PART_BYTES:
        await client.put_blob(packed.digest, packed.body)
        return
    # More than one message may take long on a slow connection.
    with progress(out, "bundle, KiB", SystemClock(), len(packed.body) // 1024) as shown_so_far:
        await client.put_blob(packed.digest, packed.body, lambda count: shown_so_far.advance(count // 1024))


def _submitted(answer: pb.SubmitResponse, spec: pb.JobSpec, packed: Bundle) -> SubmittedRecord:
    argv = list(spec.entry.value.argv) if spec.entry and spec.entry.field == "command" else []
    return SubmittedRecord(
        name=answer.name,
        id=answer.id,
        command=argv,
        replicas=spec.replicas,
        resources=amounts(spec.resources),
        bundle=packed.digest,
        bundle_files=packed.files,
        bundle_bytes=len(packed.body),
    )


def run_command(
    out: Output, controller: str, command: tuple[str, ...], **settings: Unpack[RunOptions]
) -> int:
    return ask(out, controller, lambda client: run(client, out, command, settings))
