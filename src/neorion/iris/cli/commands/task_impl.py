"""Implementation of `iris task`."""

from typing import Unpack

from neorion.iris.cli.commands.job_impl import LogSelection, fetch_task, logs
from neorion.iris.cli.session import ask
from neorion.iris.cli.tables import AttemptRecord, TaskRecord, attempts_table, tasks_table
from neorion.keel.cli.kit import Output
from neorion.keel.clock import SystemClock


def list_command(out: Output, controller: str, name: str, states: tuple[str, ...]) -> None:
    tasks = ask(out, controller, lambda client: client.tasks(name))
    chosen = [TaskRecord.of(one) for one in tasks if not states or one.state in states]
    out.show(chosen, tasks_table(SystemClock()))


def describe_command(out: Output, controller: str, name: str, task: int) -> None:
    found = ask(out, controller, lambda client: fetch_task(client, out, name, task))
    out.show_one(TaskRecord.of(found), tasks_table(SystemClock()))


def attempts_command(out: Output, controller: str, name: str, task: int) -> None:
    found = ask(out, controller, lambda client: client.attempts(name, task))
    out.show([AttemptRecord.of(one) for one in found], attempts_table(SystemClock()))


def logs_command(out: Output, controller: str, name: str, **which: Unpack[LogSelection]) -> None:
    ask(out, controller, lambda client: logs(client, out, name, which))
