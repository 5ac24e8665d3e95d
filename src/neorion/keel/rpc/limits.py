"""Limits of one server. Each has its reason; a process with other needs passes its own."""

from dataclasses import dataclass, field

from neorion.keel.base import Duration


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """The requests that one server process accepts."""

    # Larger data, such as code bundles, goes to object storage.
    body_bytes: int = 4 * 2**20
    # 4 MiB in this time is slower than any link between our processes; longer is an attack or a dead peer.
    body_time: Duration = field(default=Duration.of(seconds=30))
    # Roles of machines that hold a lease or report their health. Their requests have lanes of their own.
    member_roles: frozenset[str] = frozenset()
    # A heartbeat of every machine of a large fleet at the same moment; for one machine far more than it sends at once.
    member_calls: int = 16_384
    member_calls_each: int = 64
    # One for each machine, mostly idle, and some of machines that are being replaced.
    member_streams: int = 10_000
    member_streams_each: int = 8
    # Calls of users at once, mostly long polls. More would wait longer than callers do.
    calls: int = 4096
    # All tasks of a user share one name; three more users like this still fit.
    calls_each: int = 1024
    # Streams of users at once: logs and watched jobs.
    streams: int = 4096
    streams_each: int = 1024
    # Requests without a token: probes and scrapes, a few from each address.
    open_calls: int = 256
    open_calls_each: int = 64
    # The longest duration of a unary call, long polls included.
    call_time: Duration = field(default=Duration.of(minutes=5))
    # A stream ends after this time and the client reconnects, so that a revoked token does not watch for ever.
    stream_time: Duration = field(default=Duration.of(hours=1))
    # Many times the size of tokens and correlation ids.
    header_bytes: int = 64 * 2**10
    # From the end of one request to the end of the next one's headers, so also the idle time of a connection. Longer
    # than that of clients, or one would sometimes send into a connection that is being closed.
    header_time: Duration = field(default=Duration.of(seconds=45))
    # Connections at once; over HTTP/1.1 every stream needs one of its own.
    connections: int = 16_384
