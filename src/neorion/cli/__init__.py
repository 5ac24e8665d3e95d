"""The `neorion` command: what this machine can do, what an error means, and the systems' own commands below it.

Holds names and one line of help each. What a command does is imported when it is called.
"""

import os
from typing import Final

from neorion.keel.cli import App, run

_NEORION: Final = "Neorion"
_MACHINE: Final = "This machine"
_SYSTEMS: Final = "Systems"


app = App(
    "neorion",
    help="The control plane for a GPU fleet: jobs, nodes, development servers, conformance.",
    env_prefix="NEORION",
    distribution="neorion",
)
app.mount(
    "iris",
    "neorion.iris.cli:app",
    help="Run, follow and manage jobs on a cluster.",
    heading=_SYSTEMS,
)
app.mount(
    "devctl",
    "neorion.devservers.cli:app",
    help="Development servers: your own machine on the cluster.",
    heading=_SYSTEMS,
)
app.mount(
    "navarch",
    "neorion.navarch.cli:app",
    help="The fleet: pools, nodes, their health and their repair.",
    heading=_SYSTEMS,
)
app.mount(
    "conformance",
    "neorion.conformance.cli:app",
    help="Kubernetes AI conformance: checks, evidence and the report.",
    heading=_SYSTEMS,
)
app.mount(
    "up",
    "neorion.devservers.cli.commands.admin:install_command",
    help="Install or upgrade development servers in a cluster.",
    heading=_SYSTEMS,
)
app.mount(
    "demo",
    "neorion.stack.command:demo",
    help="Show a whole life on this machine: scale up, lose a machine, heal, return every result.",
    heading=_MACHINE,
)
app.mount(
    "drydock",
    "neorion.drydock.cli:app",
    help="A real Kubernetes on this machine, without Docker.",
    heading=_MACHINE,
)
app.mount("doctor", "neorion.cli.doctor:doctor", help="Check what this machine can run.", heading=_MACHINE)
app.mount("explain", "neorion.cli.explain:explain", help="Explain an error code.", heading=_NEORION)
app.mount(
    "version",
    "neorion.cli.version:show_version",
    help="Show the versions of Neorion and of what it runs on.",
    heading=_NEORION,
)
app.mount(
    "completion",
    "neorion.keel.cli.kit.completion:completion",
    help="Print the completion script for bash, zsh or fish.",
    heading=_NEORION,
)


def main() -> None:
    # At once: the RPC client's threads may be on their way into Python, and an interpreter that winds itself down under
    # them aborts, and the exit code with it.
    os._exit(run(app))
