"""Streams into pods: commands, terminals and connections to ports, over WebSockets of the API server.

Objects are the business of the port `Api`. No buffers: who does not read holds up the sender.
"""

from neorion.keel.kube.streams.exec import (
    Container,
    Finished,
    Output,
    Process,
    Size,
    Stream,
    attach,
    execute,
    run,
)
from neorion.keel.kube.streams.port_forward import PortStream, Target, forward, log_broken, open_port

__all__ = [
    "Container",
    "Finished",
    "Output",
    "PortStream",
    "Process",
    "Size",
    "Stream",
    "Target",
    "attach",
    "execute",
    "forward",
    "log_broken",
    "open_port",
    "run",
]
