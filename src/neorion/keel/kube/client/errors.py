"""Translates failures of connections and responses to error families."""

import ssl
from collections.abc import Generator
from contextlib import contextmanager

import msgspec

from neorion.keel.base import Deadline, Duration, Error, Retry, Terminal
from neorion.keel.http.connection_pool import PoolExhausted
from neorion.keel.http.dialer import DialError
from neorion.keel.http.message import ProtocolError, ResponseHead
from neorion.keel.kube.errors import Status, StatusDetails, refusal

# A longer Retry-After is passed on, because the caller may have other work to do than to wait.
AFTER_MAX = Duration.of(seconds=10)
# Of an error page that is not a Status: enough to recognise the server that sent it.
FOREIGN_TEXT_MAX = 200


@contextmanager
def translated(server: str) -> Generator[None]:
    """Translates connection errors. Enclose only our own waits: a caller's timeout must pass unchanged."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        raise Terminal(
            "kube.untrusted",
            f"The certificate of {server} is not trusted: {error}.",
            hint="Check the cluster's certificate authority and the server's name.",
        ) from error
    except DialError as error:
        raise Retry(
            "kube.unreachable",
            f"The API server at {server} cannot be reached: {error}.",
            hint="Check that it runs and that this machine may reach it.",
        ) from error
    except PoolExhausted as error:
        raise Retry(
            "kube.crowded",
            f"All {error} connections of this program to {server} are in use, and none became free in time.",
            hint="End watches, logs and commands that are not needed, or ask for less at once: nothing was sent.",
        ) from error
    except TimeoutError as error:
        raise Deadline(
            "kube.slow",
            f"The API server at {server} did not answer in time.",
            hint="Read the object before trying again: the request may have been carried out.",
        ) from error
    except OSError as error:
        raise Deadline(
            "kube.lost",
            f"The connection to {server} broke before the answer was complete.",
            hint="Read the object before trying again: the request may have been carried out.",
        ) from error
    except ProtocolError as error:
        raise Terminal(
            "kube.no_answer",
            f"What listens at {server} does not answer like an API server: {error}.",
            hint="Check the server's address and the proxy.",
        ) from error


def refused(head: ResponseHead, body: bytes) -> Error:
    """The error of a response. Proxies respond without a Status."""
    retry_after = head.headers.get("retry-after", "")
    after = (
        Duration.of(seconds=int(retry_after)) if retry_after.isdecimal() and len(retry_after) < 8 else None
    )
    try:
        status = msgspec.json.decode(body, type=Status)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = body[:FOREIGN_TEXT_MAX].decode(errors="replace").strip()
        status = Status(message=text, reason=head.reason)
    return refusal(
        Status(status.status, status.message, status.reason, head.status, status.details or StatusDetails()),
        after,
    )


def worth_waiting(error: Retry, *, repeatable: bool) -> bool:
    """True if the client should retry: never a request that may then be executed twice, nor after a long Retry-After."""
    if error.after is not None and error.after > AFTER_MAX:
        return False
    match error.code:
        case "kube.unreachable" | "kube.throttled":
            # The server has not executed the request.
            return True
        case "kube.unavailable":
            return repeatable or error.after is not None
        case "kube.lost" | "kube.failed":
            return repeatable
        case _:
            return False
