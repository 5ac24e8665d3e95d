"""Command line of iris, `iris` or `neorion iris`: jobs, and the cluster itself.

It calls a controller with the client only. Commands are declared in the module of their noun; implementations are
imported when a command runs, because the client imports a whole RPC stack.
"""

import os
from typing import Final

from neorion.keel.cli import App, run

_WORK: Final = "Work"
_CLUSTER: Final = "Cluster"
_SHELL: Final = "Your shell"

app = App(
    "iris",
    help="Run, follow and manage jobs on a cluster.",
    env_prefix="IRIS",
    distribution="neorion",
)
app.mount(
    "run", "neorion.iris.cli.commands.run:run_command", help="Run a command on the cluster.", heading=_WORK
)
app.mount(
    "job", "neorion.iris.cli.commands.job:job", help="List, follow, wait for and cancel jobs.", heading=_WORK
)
app.mount("task", "neorion.iris.cli.commands.task:task", help="List the tasks of a job.", heading=_WORK)
app.mount(
    "why",
    "neorion.iris.cli.commands.why:why_command",
    help="Explain why a job waits, or how it ended.",
    heading=_WORK,
)
app.mount(
    "cluster",
    "neorion.iris.cli.commands.cluster:cluster",
    help="Show, start and stop a cluster.",
    heading=_CLUSTER,
)
app.mount(
    "worker",
    "neorion.iris.cli.commands.worker:worker",
    help="List, drain and revoke workers.",
    heading=_CLUSTER,
)
app.mount(
    "slice", "neorion.iris.cli.commands.slice:slices", help="List slices of machines.", heading=_CLUSTER
)
app.mount(
    "audit",
    "neorion.iris.cli.commands.audit:audit_command",
    help="List the audit log, newest entries first.",
    heading=_CLUSTER,
)
app.mount("config", "neorion.iris.cli.commands.config:config", help="Check cluster files.", heading=_CLUSTER)
app.mount(
    "completion",
    "neorion.keel.cli.kit.completion:completion",
    help="Print the completion script for bash, zsh or fish.",
    heading=_SHELL,
)

__all__ = ["app", "main"]


def main() -> None:
    # Exits at once: threads of the RPC client may enter Python, and an interpreter that finalizes at that moment
    # aborts with another exit code.
    os._exit(run(app))
