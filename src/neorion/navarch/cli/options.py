"""Options that the commands share. Cheap to import: every help passes through here."""

from typing import Final

import click

DEFAULT_SERVER: Final = "http://localhost:50051"
# The model's own words; the model itself is too heavy for a help.
STATES: Final = (
    "ordered",
    "booting",
    "verifying",
    "spare",
    "uncordoning",
    "active",
    "cordoned",
    "draining",
    "drained",
    "terminating",
)

server_option = click.option(
    "--server", default=DEFAULT_SERVER, metavar="URL", help="Where the control plane answers."
)
why_option = click.option(
    "--why", default="", metavar="TEXT", allow_from_autoenv=False, help="Reason, for the node's history."
)
