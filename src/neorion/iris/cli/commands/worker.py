"""`iris worker`: workers, drain and revocation."""

import click

from neorion.iris.cli.options import controller_option
from neorion.keel.cli import App, yes_option

worker = App("worker", help="See workers, empty them of work, and shut them out.")

_worker = click.argument("name", metavar="WORKER")


@worker.command("list", run=".worker_impl:list_command")
@controller_option
def list_command() -> None:
    """List the workers."""


@worker.command("drain", run=".worker_impl:drain_command")
@_worker
@controller_option
def drain_command() -> None:
    """Give a worker nothing new; what runs there goes on."""


@worker.command("undrain", run=".worker_impl:undrain_command")
@_worker
@controller_option
def undrain_command() -> None:
    """Give a drained worker work again."""


@worker.command("revoke", run=".worker_impl:revoke_command")
@_worker
@yes_option
@controller_option
def revoke_command() -> None:
    """Shut a worker out for good; its tasks are tried elsewhere when its lease is over."""
