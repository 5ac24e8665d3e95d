"""Limits for requests in progress, so that no kind of caller can exclude another.

A lane has room for so many requests in all, and for fewer of any one caller. Machines whose leases depend on the server
have lanes that no other caller can fill. Callers without a token share one small lane, counted by their address.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from neorion.keel.base import Duration, Retry
from neorion.keel.rpc.auth import ANYONE, KNOWN, Principal
from neorion.keel.rpc.call_context import CallContext
from neorion.keel.rpc.limits import RequestLimits

# Without an authenticator all callers share this principal.
LOCAL: Final = Principal("local", frozenset({ANYONE, KNOWN}))
_BUSY_AFTER: Final = Duration.of(seconds=1)


class Lane:
    """Requests of one kind in progress: at most `most`, and at most `each` per caller."""

    __slots__ = ("_callers", "_counts", "_each", "_most", "_what")

    def __init__(self, what: str, most: int, each: int) -> None:
        self._what = what
        self._most = most
        self._each = each
        # A dictionary keeps its order, and a simulated run must repeat.
        self._callers: dict[CallContext, str] = {}
        self._counts: Counter[str] = Counter()

    def __iter__(self) -> Iterator[CallContext]:
        return iter(self._callers)

    def __len__(self) -> int:
        return len(self._callers)

    def enter(self, exchange: CallContext, caller: str) -> None:
        if len(self._callers) >= self._most:
            raise Retry(
                "rpc.busy",
                f"The server has {self._most} {self._what} in progress and takes no more.",
                after=_BUSY_AFTER,
            )
        if caller and self._counts[caller] >= self._each:
            raise Retry(
                "rpc.busy",
                f"The server has {self._each} {self._what} of {caller} in progress and takes no more of them.",
                after=_BUSY_AFTER,
            )
        self._callers[exchange] = caller
        self._counts[caller] += 1

    def leave(self, exchange: CallContext) -> None:
        caller = self._callers.pop(exchange)
        self._counts[caller] -= 1
        if not self._counts[caller]:
            del self._counts[caller]


class Admission:
    """The lanes of one server, and the selection of a lane for a request."""

    def __init__(self, limits: RequestLimits) -> None:
        self._members = limits.member_roles
        self._open = Lane("open requests", limits.open_calls, limits.open_calls_each)
        self._user_calls = Lane("calls", limits.calls, limits.calls_each)
        self._user_streams = Lane("streams", limits.streams, limits.streams_each)
        self._member_calls = Lane("calls of machines", limits.member_calls, limits.member_calls_each)
        self._member_streams = Lane("streams of machines", limits.member_streams, limits.member_streams_each)

    @property
    def calls(self) -> tuple[CallContext, ...]:
        return (*self._open, *self._user_calls, *self._member_calls)

    @property
    def streams(self) -> tuple[CallContext, ...]:
        return (*self._user_streams, *self._member_streams)

    def enter(self, exchange: CallContext, allow: frozenset[str], *, stream: bool) -> Lane:
        """Adds an authorised request to its lane, or rejects it. The caller removes it at the end."""
        if ANYONE in allow:
            lane, caller = self._open, exchange.source
        else:
            lane = self._lane(exchange.principal, allow, stream=stream)
            # Without tokens all callers share one name, so they cannot be counted.
            caller = "" if exchange.principal is LOCAL else exchange.principal.name
        lane.enter(exchange, caller)
        return lane

    def _lane(self, caller: Principal, allow: frozenset[str], *, stream: bool) -> Lane:
        # Without tokens only the method identifies the kind of caller.
        if self._members & caller.roles or (caller is LOCAL and allow <= self._members):
            return self._member_streams if stream else self._member_calls
        return self._user_streams if stream else self._user_calls
