"""`iris worker`: workers, drain and revocation."""

import click

from neorion.iris.cli.options import controller_option
from neorion.keel.cli import App, yes_option

worker = App("worker", help="List, drain and revoke workers.")

_worker = click.argument("name", metavar="WORKER")


@worker.command("list", run=".worker_impl:list_command")
@controller_option
def list_command() -> None:
    """List workers."""


@worker.command("drain", run=".worker_impl:drain_command")
@_worker
@controller_option
def drain_command() -> None:
    """Drain a worker. Running tasks continue, and no new ones are assigned."""


@worker.command("undrain", run=".worker_impl:undrain_command")
@_worker
@controller_option
def undrain_command() -> None:
    """Return a drained worker to use."""


@worker.command("revoke", run=".worker_impl:revoke_command")
@_worker
@yes_option
@controller_option
def revoke_command() -> None:
    """Revoke a worker permanently. Its tasks are retried elsewhere after its lease."""
