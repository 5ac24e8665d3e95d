"""`iris task`: the parts of a job."""

import click

from neorion.iris.cli.options import controller_option, state_option
from neorion.keel.cli import App
from neorion.keel.cli.kit import Output

task = App("task", help="See the tasks of a job.")


@task.command("list")
@click.argument("name", metavar="JOB")
@state_option
@controller_option
def list_command(out: Output, controller: str, name: str, states: tuple[str, ...]) -> None:
    """List the tasks of a job."""
    from neorion.iris.cli.asking import ask, named  # noqa: PLC0415 -- the help does not need it
    from neorion.iris.cli.records import TaskRecord, tasks_table  # noqa: PLC0415 -- as above
    from neorion.keel.clock import SystemClock  # noqa: PLC0415 -- as above

    tasks = ask(out, controller, lambda client: client.tasks(named(client, name)))
    chosen = [TaskRecord.of(one) for one in tasks if not states or one.state in states]
    out.show(chosen, tasks_table(SystemClock()))
