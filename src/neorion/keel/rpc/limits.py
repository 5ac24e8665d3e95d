"""How much one server takes on. Every number has its reason; a process that needs another passes its own."""

from dataclasses import dataclass, field

from neorion.keel.base import Duration


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """What one server process accepts."""

    # A request with code bundles goes to object storage; what comes here are messages.
    body_bytes: int = 4 * 2**20
    # 4 MiB in this time is slower than any link between our processes; longer is an attack or a dead peer.
    body_time: Duration = field(default=Duration.of(seconds=30))
    # Roles of machines that hold a lease or report their health. Their requests have lanes of their own.
    member_roles: frozenset[str] = frozenset()
    # A heartbeat of every machine of a large fleet at the same moment; of one machine far more than it sends at once.
    member_calls: int = 16_384
    member_calls_each: int = 64
    # One for each machine, mostly idle, and some that are being replaced.
    member_streams: int = 10_000
    member_streams_each: int = 8
    # Calls of users at once, mostly long polls. Beyond it waiting in line would outlast the callers' patience.
    calls: int = 4096
    # All tasks of a user call under one name; three more users like this still find room.
    calls_each: int = 1024
    # Streams of users at once: logs and jobs that are watched.
    streams: int = 4096
    streams_each: int = 1024
    # Requests without a token: probes and scrapes, a few from each address.
    open_calls: int = 256
    open_calls_each: int = 64
    # The longest a unary call may take, long polls included.
    call_time: Duration = field(default=Duration.of(minutes=5))
    # A stream ends at the latest then and the client reconnects: a revoked token does not watch for ever.
    stream_time: Duration = field(default=Duration.of(hours=1))
    # Tokens and correlation ids fit many times over.
    header_bytes: int = 64 * 2**10
    # From the end of one request to the end of the next one's headers: so long is an idle connection kept. Longer than
    # clients keep theirs, or now and then one would send into a connection that is just being closed; and not much longer,
    # because a client that sends half a request can delay the end of the server by it.
    header_time: Duration = field(default=Duration.of(seconds=45))
    # Connections at once; over HTTP/1.1 every stream needs one of its own.
    connections: int = 16_384
