"""Limits the connections of this process, so that file descriptors remain for other uses."""

import resource
from typing import Final

from neorion.keel.base import Invalid
from neorion.keel.telemetry import logger

log = logger(__name__)

# For the store, logs, blobs and outgoing connections. Incoming connections must not use these up.
RESERVED: Final = 256
# Fewer connections would not serve a small cluster.
_LEAST: Final = 64


def connections_allowed(wanted: int) -> int:
    """Returns the allowed number of connections, at most `wanted`. Raises the soft limit of this process if possible."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft not in (unlimited, hard) and soft < wanted + RESERVED:
        soft = wanted + RESERVED if hard == unlimited else min(hard, wanted + RESERVED)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    allowed = wanted if soft == unlimited else min(wanted, soft - RESERVED)
    if allowed < _LEAST:
        raise Invalid(
            "rpc.few_files",
            f"This process may open {soft} files, which leaves room for fewer than {_LEAST} connections.",
            hint=f"Raise the limit to at least {RESERVED + _LEAST}: ulimit -n.",
        )
    if allowed < wanted:
        log.warning("fewer connections than wanted", allowed=allowed, wanted=wanted, open_files=soft)
    return allowed
