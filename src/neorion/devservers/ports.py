"""Ports of devservers: everything outside the API's objects."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from neorion.devservers.model import Alert
from neorion.devservers.model.kube_types import DevServerObject
from neorion.devservers.model.login import DevServerLoginPolicySpec, DevServerUserRequestSpec
from neorion.devservers.model.user import FetchedKeys
from neorion.keel.kube import ObjectKey

if TYPE_CHECKING:
    from anyio.abc import ByteStream

    from neorion.keel.kube.streams import ContainerRef, ExecOutput, TerminalSize


class ActivityProber(Protocol):
    """Looks into the pods of servers."""

    async def probe(self, pod: ObjectKey) -> str:
        """Runs the probe in the pod and returns its output, which `decide.read` parses.

        Raises an `Error` of any family when it cannot be run there, or takes too long.
        """
        ...


class TerminalNotifier(Protocol):
    """Writes to the open terminals of a server."""

    async def write(self, pod: ObjectKey, text: str) -> None:
        """Writes a line to every open terminal of the pod. Raises an `Error` of any family on failure."""
        ...


class AlertHook(Protocol):
    """A receiver of every warning outside the cluster."""

    async def send(self, alert: Alert) -> None:
        """Sends a warning, with a few retries. Raises an `Error` of any family if it was not accepted."""
        ...


@dataclass(frozen=True, slots=True)
class HostKey:
    """Host key of a server. Its private half is a secret and stays out of logs."""

    private: str = field(repr=False)
    public: str


class KeyServer(Protocol):
    """Knows the public keys of people by their logins."""

    async def keys(self, login: str) -> FetchedKeys:
        """A login that does not exist has no keys."""
        ...


class EvidenceChecker(Protocol):
    """Checks the evidence of first logins."""

    async def verify(self, request: DevServerUserRequestSpec, policy: DevServerLoginPolicySpec) -> None:
        """Raises Denied where it does not prove the user of the request, and Retry where that cannot be said now."""
        ...


class HostKeyFactory(Protocol):
    """Makes keys from real chance."""

    def host_key(self) -> HostKey: ...


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that can be connected to: its Pod, and the host key that it proves itself with, if it has SSH."""

    name: str
    namespace: str
    pod: str
    address: str = ""
    host_key: str = ""


class ServerConnections(Protocol):
    """Reaches the servers of users."""

    async def wake(self, server: ObjectKey, tell: Callable[[str], None]) -> RunningServer:
        """Starts a server that sleeps, and returns when it runs. `tell` gets a line for each step of a start.

        Raises NotFound where there is no such server, and an `Error` of another family when it does not come up.
        """
        ...

    def connect(self, server: RunningServer, port: int) -> "AbstractAsyncContextManager[ByteStream]":
        """A connection to a port of the server."""
        ...


class RunningCommand(Protocol):
    """A command in a container. Iterate for its output; `code` is its exit code once the iteration is over."""

    code: int | None

    async def write(self, data: bytes) -> None: ...

    async def close_stdin(self) -> None: ...

    async def resize(self, size: "TerminalSize") -> None: ...

    def __aiter__(self) -> "AsyncIterator[ExecOutput]": ...


class Containers(Protocol):
    """Runs commands in the Pods of users."""

    async def console(self, user: str, tell: Callable[[str], None]) -> "ContainerRef":
        """The user's console, started if it does not run. `tell` gets a line for each step of a start.

        Raises an `Error` when it does not come up.
        """
        ...

    def execute(
        self, container: "ContainerRef", command: Sequence[str], *, tty: bool
    ) -> AbstractAsyncContextManager[RunningCommand]: ...


class OperatorMetrics(Protocol):
    """Counts what happens outside the API, and the servers themselves."""

    def oversee(self, servers: Iterable[DevServerObject]) -> None:
        """Sets the servers that are counted at each scrape."""
        ...

    def probed(self, *, well: bool) -> None:
        """Counts a probe, and whether it succeeded."""
        ...

    def warned(self, way: str, *, well: bool) -> None:
        """One warning on one way, and whether it arrived."""
        ...


class NullOperatorMetrics:
    """Counts nothing."""

    def oversee(self, servers: Iterable[DevServerObject]) -> None:
        """Does nothing."""

    def probed(self, *, well: bool) -> None:
        """Does nothing."""

    def warned(self, way: str, *, well: bool) -> None:
        """Does nothing."""


UNTALLIED = NullOperatorMetrics()
