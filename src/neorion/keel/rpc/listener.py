"""The HTTP server behind `serve`: granian, embedded in the process's own loop.

Imported only by a process that serves: granian costs a command line's whole start-up.
"""

import socket
from typing import Any, Final

from granian._granian import SocketHolder  # granian has no public way to be given a socket
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings, HTTP2Settings
from granian.log import LogLevels
from granian.server.embed import Server

from neorion.keel.rpc.asgi import Application
from neorion.keel.rpc.limits import RequestLimits
from neorion.keel.rpc.tls import ServerTls

# Several streams of one client share a connection over HTTP/2; this many before it opens another.
_H2_STREAMS: Final = 1000
# Incremental and empty: granian would otherwise close the handlers of every other logger and write to stdout.
_LOGGING: Final[dict[str, Any]] = {"incremental": True, "handlers": {}, "loggers": {}}


class Listener(Server):
    """Granian on a socket that is already bound and listening.

    Granian itself binds with SO_REUSEPORT, where a second server on the same port gets half of the connections instead
    of an error, and does not report its port.
    """

    def __init__(
        self, app: Application, bound: socket.socket, limits: RequestLimits, tls: ServerTls | None
    ) -> None:
        self._bound = bound
        host, port = bound.getsockname()[:2]
        super().__init__(
            app,
            address=host,
            port=port,
            interface=Interfaces.ASGINL,
            http=HTTPModes.auto,
            websockets=False,
            backpressure=limits.connections,
            http1_settings=HTTP1Settings(
                header_read_timeout=round(limits.header_time.ms), max_buffer_size=limits.header_bytes
            ),
            http2_settings=HTTP2Settings(
                max_concurrent_streams=_H2_STREAMS, max_headers_size=limits.header_bytes
            ),
            log_level=LogLevels.error,
            log_dictconfig=_LOGGING,
            ssl_cert=tls and tls.cert,
            ssl_key=tls and tls.key,
            ssl_ca=tls and tls.client_ca,
            ssl_client_verify=tls is not None and tls.client_ca is not None,
        )

    def _init_shared_socket(self) -> None:
        # Granian owns the descriptor from here and closes it when it stops.
        self._shd = SocketHolder(self._bound.detach(), False, self.backlog)  # pyright: ignore[reportCallIssue] -- its stub omits the arguments
