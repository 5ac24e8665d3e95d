"""Strangers and one greedy user, as a process: `python -m bench.strangers ADDRESS [TOKEN JOB]`.

They hold requests half open, announce bodies that never come, keep connections idle, and with a token they fill the server
with long polls. What the server ends is begun again. Attackers have machines of their own, so these take only the processor
time that is left. Prints a line when all of it stands, and ends with its input.
"""

import asyncio
import os
import ssl
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from urllib.parse import SplitResult, urlsplit

import uvloop

from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.rpc.pin import PinnedToken
from tests.attacks import h2

HALF_OPEN_CONNECTIONS, HALF_OPEN_EACH = 2, 520
BODIES = 500
IDLE = 1_000
POLLS = 1_000
# Between two connections or polls of one attacker. With less, the cost of new connections is all that is measured.
REST_S = 5.0
WAIT = "/neorion.iris.v1.JobService/Wait"

Attack = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def half_open(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    numbers = range(1, 2 * HALF_OPEN_EACH, 2)
    writer.write(h2.settings() + b"".join(h2.open_get(number, "/health") for number in numbers))
    while await reader.read(65_536):
        pass


def silent_body(token: str) -> Attack:
    """Announces a body that never comes. Only who has a token is waited for."""
    lines = [f"POST {WAIT} HTTP/1.1", "host: x", "content-type: application/proto", "content-length: 1000"]
    lines += [f"authorization: Bearer {token}"] if token else []
    request = "\r\n".join(lines).encode() + b"\r\n\r\n"

    async def announce(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(request)
        while await reader.read(65_536):
            pass

    return announce


async def idle(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await reader.read()


def long_poll(token: str, job: str) -> Attack:
    body = pb.WaitRequest(job=job, timeout_ms=60_000).to_binary()
    lines = [
        f"POST {WAIT} HTTP/1.1",
        "host: x",
        "content-type: application/proto",
        "connect-protocol-version: 1",
        f"authorization: Bearer {token}",
        f"content-length: {len(body)}",
    ]
    request = "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    async def poll(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            await asyncio.sleep(REST_S)

    return poll


def unverified(protocol: str) -> ssl.SSLContext:
    """Strangers do not ask whose server it is."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols([protocol])
    return context


async def repeat(place: SplitResult, attack: Attack, begun: asyncio.Semaphore) -> None:
    """The same attack on one connection after the other."""
    tls = unverified("h2" if attack is half_open else "http/1.1") if place.scheme == "https" else None
    first = True
    while True:
        with suppress(OSError, EOFError, ValueError):
            reader, writer = await asyncio.open_connection(place.hostname, place.port, ssl=tls)
            if first:
                begun.release()
                first = False
            try:
                await attack(reader, writer)
            finally:
                writer.close()
        await asyncio.sleep(REST_S)


async def main(address: str, login: list[str]) -> None:
    place = urlsplit(address)
    if login:
        login = [PinnedToken.parse(login[0]).token or "", login[1]]
    attacks: list[tuple[int, Attack]] = [
        (HALF_OPEN_CONNECTIONS, half_open),
        (BODIES, silent_body(login[0] if login else "")),
        (IDLE, idle),
    ]
    if login:
        attacks.append((POLLS, long_poll(*login)))
    begun, total = asyncio.Semaphore(0), sum(count for count, _ in attacks)
    async with asyncio.TaskGroup() as group:
        running = [
            group.create_task(repeat(place, attack, begun)) for count, attack in attacks for _ in range(count)
        ]
        for _ in range(total):
            await begun.acquire()
        print(f"{total} connections", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        for one in running:
            one.cancel()


if __name__ == "__main__":
    os.nice(19)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(sys.argv[1], sys.argv[2:]))
