"""Implementation of `iris job`."""

from collections.abc import Sequence
from typing import Final, TypedDict, Unpack

from neorion.iris.cli.exit_status import exit_code, why
from neorion.iris.cli.log_follower import JobFollower
from neorion.iris.cli.log_format import past, shown, tasks_of
from neorion.iris.cli.session import ask
from neorion.iris.cli.tables import NAMES, JobRecord, NameRecord, jobs_table
from neorion.iris.client import AsyncIrisClient
from neorion.iris.client.connection import PAGE
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.base import Deadline, Duration, Invalid, UnitError
from neorion.keel.cli import Exit, Format
from neorion.keel.cli.kit import Output, confirm
from neorion.keel.clock import SystemClock

# Enough for a person or a script; a prefix or a state narrows the list.
_LISTED_MAX: Final = 10_000
_WATCH_EVERY: Final = Duration.of(seconds=1)


class LogSelection(TypedDict):
    """Selected part of a job's logs."""

    task: int | None
    attempt: int | None
    follow: bool
    tail: int | None


async def listed(client: AsyncIrisClient, out: Output, prefix: str, states: list[str]) -> list[JobRecord]:
    records: list[JobRecord] = []
    after = ""
    while True:
        request = pb.ListRequest(prefix=prefix, states=states, limit=PAGE, after=after)
        page = await client.calls.list(request)
        records += map(JobRecord.of, page.jobs)
        after = page.next
        if not after:
            return records
        if len(records) >= _LISTED_MAX:
            out.warn(
                f"Only the newest {len(records)} jobs are shown. Narrow the list with a prefix or --state."
            )
            return records


async def show_list(client: AsyncIrisClient, out: Output, prefix: str, states: list[str]) -> None:
    out.show(await listed(client, out, prefix, states), jobs_table(SystemClock()))


async def watch_list(client: AsyncIrisClient, out: Output, prefix: str, states: list[str]) -> None:
    """Shows each job, then again after each change. A job that leaves the chosen states is shown once more."""
    clock = SystemClock()
    emit = out.watch(jobs_table(clock))
    known: dict[str, JobRecord] = {}
    while True:
        now = {record.id: record for record in await listed(client, out, prefix, states)}
        gone = [JobRecord.of(await client.get(job)) for job in known if job not in now]
        for record in [*gone, *reversed(now.values())]:
            if known.get(record.id) != record:
                emit(record)
        known = now
        await clock.sleep(_WATCH_EVERY)


async def describe(client: AsyncIrisClient, out: Output, name: str) -> None:
    found = await client.get(name)
    out.show_one(JobRecord.of(found), jobs_table(SystemClock()))


async def fetch_task(client: AsyncIrisClient, out: Output, name: str, number: int) -> pb.Task:
    (found,) = await tasks_of(client, out, client.named(name), number)
    if found.usage is None and (tries := await client.attempts(name, number)):
        # The usage of an ended task is that of its last attempt.
        found.usage = tries[-1].usage
    return found


async def logs(client: AsyncIrisClient, out: Output, name: str, which: LogSelection) -> None:
    """Shows the log of each task's newest attempt or of the chosen one; with `follow` also later output."""
    only, follow = which["task"], which["follow"]
    if follow and which["attempt"]:
        raise Invalid(
            "iris.logs", "Only the newest attempt can be followed.", hint="Leave out --attempt or --follow."
        )
    job = client.named(name)
    tasks = await tasks_of(client, out, job, only)
    with shown(out, several=len(tasks) > 1) as show:
        following = JobFollower(client, job, show, out.say, only)
        for task in tasks:
            # A task without an attempt has no log, which is an error only if this task was chosen.
            if task.tries or (only is not None and not follow):
                number = which["attempt"] or task.tries
                request = pb.LogsRequest(
                    job=job, task=task.index, attempt=number, tail_lines=which["tail"] or 0
                )
                following.begin(task.index, number, await past(client, request, show))
        if follow:
            await following.run()


async def wait(client: AsyncIrisClient, out: Output, name: str, most: str | None) -> int:
    try:
        limit = None if most is None else Duration.parse(most).seconds
    except UnitError as error:
        raise Invalid(
            "iris.limits", f"timeout: {error}.", hint='Write a time such as 90, "30s" or "2h".'
        ) from None
    try:
        ended = await client.ended(client.named(name), limit)
    except Deadline as error:
        out.say(error.sentence)
        out.say(f"hint: {error.hint}")
        return Exit.TIMEOUT
    if out.shared.output in (Format.TABLE, Format.WIDE):
        out.say(why(ended.job).sentence)
    else:
        out.show_one(JobRecord.of(ended.job), jobs_table(SystemClock()))
    return exit_code(ended.job)


async def cancel(
    client: AsyncIrisClient, out: Output, names: Sequence[str], *, yes: bool, dry_run: bool
) -> None:
    # All are looked up first, so that an unknown name cancels nothing.
    found = [await client.get(name) for name in names]
    ended = {job.id for job in found if job.ended_ms}
    for job in found:
        if job.id in ended:
            out.say(f"{job.name} has already ended.")
    live = [job for job in found if job.id not in ended]
    if live and not dry_run:
        confirm(f"Cancel {', '.join(job.name for job in live)}?", yes=yes)
    done: list[str] = []
    for job in live:
        answer = await client.calls.cancel(pb.CancelRequest(job=job.id, dry_run=dry_run))
        done += answer.jobs
    if dry_run:
        out.say(
            "Nothing was changed. These jobs would be cancelled:" if done else "No job needs to be cancelled."
        )
    out.show([NameRecord(name) for name in done], NAMES)


def list_command(
    out: Output, controller: str, prefix: str, states: tuple[str, ...], *, everything: bool, watch: bool
) -> None:
    chosen = list(states) if everything or states else ["pending", "running"]
    action = watch_list if watch else show_list
    ask(out, controller, lambda client: action(client, out, prefix, chosen))


def describe_command(out: Output, controller: str, name: str) -> None:
    ask(out, controller, lambda client: describe(client, out, name))


def logs_command(out: Output, controller: str, name: str, **which: Unpack[LogSelection]) -> None:
    ask(out, controller, lambda client: logs(client, out, name, which))


def wait_command(out: Output, controller: str, name: str, timeout: str | None) -> int:
    return ask(out, controller, lambda client: wait(client, out, name, timeout))


def cancel_command(out: Output, controller: str, names: tuple[str, ...], *, dry_run: bool, yes: bool) -> None:
    ask(out, controller, lambda client: cancel(client, out, names, yes=yes, dry_run=dry_run))
