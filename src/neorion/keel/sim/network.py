"""The network between hosts: calls, datagrams and byte streams, addressed by name.

An address is "host:service". The sender is the host of the running task. Values are passed by
reference, so send bytes or frozen values.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Final, Generic, TypeVar

from neorion.keel.base import Conflict, Error, Invalid, Retry
from neorion.keel.clock import Rng
from neorion.keel.sim.loop import SeededLoop
from neorion.keel.sim.network_links import Link, Links
from neorion.keel.sim.process import PROCESS, Process, here
from neorion.keel.sim.stream import Stream, stream_pair
from neorion.keel.sim.trace import Trace

Answer = Callable[[str, Any], Awaitable[object]]
Attend = Callable[[Stream], Awaitable[None]]
Target = TypeVar("Target")

# A receiver that does not read loses datagrams beyond this number, as with a socket buffer.
MAILBOX_MAX: Final = 1_000


class Mailbox:
    """Received datagrams that wait to be read."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[str, Any]] = deque()
        self._arrival = asyncio.Event()

    async def receive(self) -> tuple[str, Any]:
        """Returns the next message with its sender's name."""
        while not self._waiting:
            self._arrival.clear()
            await self._arrival.wait()
        return self._waiting.popleft()

    def put(self, sender: str, message: object) -> bool:
        if len(self._waiting) >= MAILBOX_MAX:
            return False
        self._waiting.append((sender, message))
        self._arrival.set()
        return True


@dataclass(frozen=True, slots=True, eq=False)
class _Service(Generic[Target]):
    """A service at an address, its process, and the context in which its code runs."""

    process: Process | None
    context: Context
    target: Target

    @property
    def alive(self) -> bool:
        return self.process is None or self.process.alive


@dataclass(slots=True, eq=False)
class _Exchange:
    """A call or connection in progress: its client, its server, and the two ends to notify of a failure."""

    link: Link
    reply: "asyncio.Future[Any]"
    client: Process | None
    server: Process | None = None
    ends: tuple[Stream, Stream] | None = None

    def settle(self, value: object) -> None:
        if not self.reply.done():
            self.reply.set_result(value)

    def refuse(self, error: Exception) -> None:
        if not self.reply.done():
            self.reply.set_exception(error)
            self.reply.exception()  # marks it as retrieved: the client may be gone

    def break_client(self) -> None:
        self.refuse(_reset(self.link[1]))
        if self.ends:
            self.ends[0].reset()

    def break_server(self) -> None:
        if self.ends:
            self.ends[1].reset()


class Network:
    """The network. Messages are subject to the conditions of the links. Errors are `Retry`: the outcome is unknown."""

    def __init__(self, loop: SeededLoop, links: Links, rng: Rng, trace: Trace) -> None:
        self._loop = loop
        self._links = links
        self._rng = rng
        self._trace = trace
        self._answers: dict[str, _Service[Answer]] = {}
        self._listeners: dict[str, _Service[Attend]] = {}
        self._mailboxes: dict[str, _Service[Mailbox]] = {}
        self._open: dict[int, _Exchange] = {}
        self._number = count(1)

    @contextmanager
    def serve(self, address: str, answer: Answer) -> Generator[None]:
        """Serves calls: `await answer(caller, request)`. An `Error` it raises is raised at the caller."""
        with _registered(self._answers, address, answer):
            yield

    @contextmanager
    def listen(self, address: str, attend: Attend) -> Generator[None]:
        """Accepts connections: `await attend(stream)`, which is closed when that returns."""
        with _registered(self._listeners, address, attend):
            yield

    @contextmanager
    def mailbox(self, address: str) -> Generator[Mailbox]:
        """Receives datagrams."""
        box = Mailbox()
        with _registered(self._mailboxes, address, box):
            yield box

    async def call(self, address: str, request: object) -> Any:  # noqa: ANN401 -- the two ends agree on the type
        """Sends a request and waits for the response without limit: timeouts belong to the caller."""
        return await self._ask(address, partial(self._begin_call, address, request))

    async def connect(self, address: str) -> Stream:
        return await self._ask(address, partial(self._begin_stream, address))

    def send(self, address: str, message: object) -> None:
        """Sends a datagram without confirmation."""
        sender = here()
        self._trace.add(f"send {type(message).__name__} to {address}")
        self._links.toss((sender, _host(address)), partial(self._post, sender, address, message))

    def reset(self, one: str, other: str) -> None:
        """Breaks every call and connection between two hosts."""
        self._trace.add(f"reset {one} - {other}")
        for exchange in list(self._open.values()):
            if exchange.link in {(one, other), (other, one)}:
                exchange.break_client()
                exchange.break_server()

    def disconnect(self, process: Process) -> None:
        """Breaks the connections of a process that has died, as its kernel would."""
        for number, exchange in list(self._open.items()):
            src, dst = exchange.link
            if exchange.server is process:
                del self._open[number]
                self._links.carry((dst, src), exchange.break_client)
            elif exchange.client is process:
                self._links.carry((src, dst), exchange.break_server)

    async def _ask(self, address: str, begin: Callable[[int, _Exchange], None]) -> Any:  # noqa: ANN401 -- as `call`
        link = (here(), _host(address))
        number = next(self._number)
        exchange = self._open[number] = _Exchange(link, self._loop.create_future(), PROCESS.get())
        self._trace.add(f"#{number} to {address}")
        self._links.carry(link, partial(begin, number, exchange))
        try:
            return await exchange.reply
        except asyncio.CancelledError:
            if exchange.ends is not None:
                self._links.carry(link, exchange.break_server)
            raise
        finally:
            if exchange.ends is None:
                self._open.pop(number, None)

    def _begin_call(self, address: str, request: object, number: int, exchange: _Exchange) -> None:
        service = self._found(self._answers, address, number, exchange)
        if service is not None:
            work = self._answer(service.target, request, number, exchange)
            self._loop.create_task(work, name=f"{address} #{number}", context=service.context.copy())

    async def _answer(self, answer: Answer, request: object, number: int, exchange: _Exchange) -> None:
        src, dst = exchange.link
        try:
            deliver = partial(exchange.settle, await answer(src, request))
        except Error as error:
            deliver = partial(exchange.refuse, error)
        except Exception as error:  # noqa: BLE001 -- an error in a server must end the run, not reach its caller
            self._loop.fail(error)
            return
        exchange.server = None  # the response arrives even if the server dies now
        self._trace.add(f"#{number} answered")
        self._links.carry((dst, src), deliver)

    def _begin_stream(self, address: str, number: int, exchange: _Exchange) -> None:
        if exchange.reply.cancelled():
            return
        service = self._found(self._listeners, address, number, exchange)
        if service is not None:
            src, dst = exchange.link
            ends = exchange.ends = stream_pair(self._links, exchange.link, self._rng)
            work = self._attend(service.target, ends[1], number)
            self._loop.create_task(work, name=f"{address} #{number}", context=service.context.copy())
            self._links.carry((dst, src), partial(exchange.settle, ends[0]))

    async def _attend(self, attend: Attend, stream: Stream, number: int) -> None:
        try:
            async with stream:
                await attend(stream)
        except Exception as error:  # noqa: BLE001 -- as in _answer
            self._loop.fail(error)
        finally:
            self._open.pop(number, None)

    def _found(
        self, services: dict[str, _Service[Target]], address: str, number: int, exchange: _Exchange
    ) -> _Service[Target] | None:
        service = services.get(address)
        if service is None or not service.alive:
            src, dst = exchange.link
            self._trace.add(f"#{number} refused by {dst}")
            self._links.carry((dst, src), partial(exchange.refuse, _refused(address)))
            return None
        self._trace.add(f"#{number} arrives at {address}")
        exchange.server = service.process
        return service

    def _post(self, sender: str, address: str, message: object) -> None:
        service = self._mailboxes.get(address)
        taken = service is not None and service.alive and service.target.put(sender, message)
        self._trace.add(f"{'arrives' if taken else 'is not taken'} {type(message).__name__} at {address}")


@contextmanager
def _registered(services: dict[str, _Service[Target]], address: str, target: Target) -> Generator[None]:
    """Registers a service at an address while the block runs and the process is alive."""
    process = PROCESS.get()
    if process is not None and _host(address) != process.name:
        raise Invalid(
            "sim.address", f"{process.name} cannot serve {address}.", hint=f'Use "{process.name}:…".'
        )
    taken = services.get(address)
    if taken is not None and taken.alive:
        raise Conflict(
            "sim.address_taken", f"{address} is served already.", hint="Close the other one first."
        )
    service = services[address] = _Service(process, copy_context(), target)
    try:
        yield
    finally:
        if services.get(address) is service:
            del services[address]


def _host(address: str) -> str:
    host, colon, service = address.partition(":")
    if not (host and colon and service):
        raise Invalid("sim.address", f'"{address}" is not a valid address.', hint='Write "host:service".')
    return host


def _refused(address: str) -> Retry:
    return Retry("sim.refused", f"No service listens at {address}.", hint="Try again when it is back.")


def _reset(host: str) -> Retry:
    return Retry(
        "sim.reset", f"{host} broke the connection.", hint="Check whether the work was done, or try again."
    )
