"""`neorion drydock`: a real Kubernetes on this machine by one command, and gone without a trace by another.

Declares commands and shows results; what they do is in the other rooms and imported when a command is called.
"""

from typing import Final

from neorion.keel.cli import App

_CLUSTER: Final = "Cluster"
_USE: Final = "Use it"
_NODES: Final = "Nodes"
_MACHINE: Final = "This machine"

app = App("drydock", help="A real Kubernetes on this machine, without Docker.", env_prefix="NEORION_DRYDOCK")
app.mount(
    "up",
    "neorion.drydock.cli.commands.cluster:up_command",
    help="Make a cluster, or bring back what of it does not run.",
    heading=_CLUSTER,
)
app.mount(
    "down",
    "neorion.drydock.cli.commands.cluster:down_command",
    help="Remove a cluster without a trace.",
    heading=_CLUSTER,
)
app.mount(
    "status",
    "neorion.drydock.cli.commands.status:status_command",
    help="Show the clusters of this machine.",
    heading=_CLUSTER,
)
app.mount(
    "logs",
    "neorion.drydock.cli.commands.status:logs_command",
    help="Print the log of a part of a cluster.",
    heading=_CLUSTER,
)
app.mount(
    "kubeconfig",
    "neorion.drydock.cli.commands.kubectl:kubeconfig_command",
    help="Print where a cluster's kubeconfig is.",
    heading=_USE,
)
app.mount(
    "kubectl",
    "neorion.drydock.cli.commands.kubectl:kubectl_command",
    help="Run kubectl as the administrator of a cluster.",
    heading=_USE,
)
app.mount(
    "url",
    "neorion.drydock.cli.commands.status:url_command",
    help="Print the address of an add-on.",
    heading=_USE,
)
app.mount("node", "neorion.drydock.cli.commands.node:node", help="Add and remove nodes.", heading=_NODES)
app.mount(
    "build-image",
    "neorion.drydock.cli.commands.image:build_image_command",
    help="Build an image from a Dockerfile and give it to a cluster.",
    heading=_USE,
)
app.mount(
    "load-image",
    "neorion.drydock.cli.commands.image:load_image_command",
    help="Give a cluster the images of an archive.",
    heading=_USE,
)
app.mount(
    "build",
    "neorion.drydock.cli.commands.cluster:build_command",
    help="Build the programs that clusters are made of.",
    heading=_MACHINE,
)

__all__ = ["app"]
