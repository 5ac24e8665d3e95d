"""Streams into pods: commands, terminals and connections to ports, over WebSockets of the API server.

Objects are the business of the port `Api`. No buffers: who does not read holds up the sender.
"""

from neorion.keel.kube.streams.exec import (
    ContainerRef,
    ExecOutput,
    ExecResult,
    ExecSession,
    OutputStream,
    TerminalSize,
    attach,
    execute,
    run,
)
from neorion.keel.kube.streams.port_forward import PodPort, PortStream, forward, log_broken, open_port

__all__ = [
    "ContainerRef",
    "ExecOutput",
    "ExecResult",
    "ExecSession",
    "OutputStream",
    "PodPort",
    "PortStream",
    "TerminalSize",
    "attach",
    "execute",
    "forward",
    "log_broken",
    "open_port",
    "run",
]
