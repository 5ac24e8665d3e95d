"""Streams into pods: commands, terminals and connections to ports, over WebSockets of the API server.

Objects are the business of the port `Api`. No buffers: who does not read holds up the sender.
"""

from neorion.keel.kube.streams.forward import PortStream, Target, forward, log_broken, open_port
from neorion.keel.kube.streams.process import (
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
