"""The price of TLS with a pin: one job, and one heartbeat, beside the same on plain HTTP in the same run.

Servers run in processes of their own: `python -m bench.iris.tls tls|plain`.
"""

import asyncio
import itertools
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.keel.rpc import BEARER, CALLS, IN_FLIGHT, Control, call, cpu_ns, heartbeat, request
from bench.kit import Report
from neorion.iris.client import IrisClient, async_client

ROUNDS: Final = 9
JOBS: Final = 5

# A cluster without keys and pins, as no program of ours starts one.
_PLAIN: Final = """
import sys
from neorion.iris.app import cluster, commands, main
WORKER = "from neorion.iris.app import commands, main; commands.check_proof = lambda *_: None; import sys; "
WORKER += "sys.exit(main.main(sys.argv[1:]))"
command = cluster.worker_command
def plain(machine):
    words = list(command(machine))
    at = words.index("-m")
    return [*words[:at], "-c", WORKER, *words[at + 2 :]]
cluster.worker_command = plain
cluster.self_signed = lambda folder: None
cluster.pin_of = lambda tls: ""
sys.exit(main.main(sys.argv[1:]))
"""


def run(report: Report) -> None:
    with heartbeats("tls") as secure, heartbeats("plain") as bare:
        report.compare(
            f"a heartbeat of 8 GPUs, {IN_FLIGHT} connections",
            "µs of CPU",
            lambda: 1e6 * asyncio.run(_beats(*secure, tls=True)),
            ("plain HTTP", lambda: 1e6 * asyncio.run(_beats(*bare, tls=False))),
            rounds=ROUNDS,
        )
    async_client.check_proof = _accept
    with cluster("tls") as ours, cluster("plain") as plain:
        report.compare(
            "one job, submit to value, a process of its own",
            "ms",
            lambda: _job_ms(ours),
            ("plain HTTP", lambda: _job_ms(plain)),
            rounds=ROUNDS,
        )


def _accept(address: str, token: str | None) -> None:
    """Lets a token be sent over plain HTTP."""
    del address, token


def _job_ms(client: IrisClient) -> float:
    began = time.perf_counter()
    for number in range(JOBS):
        client.wait(client.submit(lambda: 42, f"job-{next(_NUMBERS)}-{number}"))
    return (time.perf_counter() - began) * 1000 / JOBS


_NUMBERS: Final = itertools.count()


@contextmanager
def cluster(kind: str) -> Generator[IrisClient]:
    program = ["-P", "-m", "neorion.iris"] if kind == "tls" else ["-P", "-c", _PLAIN]
    with tempfile.TemporaryDirectory(prefix="iris-", ignore_cleanup_errors=True) as folder:
        command = [sys.executable, *program, "local", "--leash", "--port", "0", "--folder", folder]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdout
            assert process.stdin
            address = process.stdout.readline().strip()
            token = (Path(folder) / "admin.token").read_text()
            with IrisClient.remote(address, token=token) as client:
                client.wait(client.submit(lambda: None, "warm-up"))
                yield client
            process.stdin.close()
            process.wait()


@contextmanager
def heartbeats(kind: str) -> Generator[tuple[int, int]]:
    """The port and the process id of a server."""
    command = [sys.executable, "-m", "bench.iris.tls", kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdin
        yield int(process.stdout.readline()), process.pid
        process.stdin.close()


async def _serve(*, tls: bool) -> None:
    from bench.keel.gen.fleet_connect import FleetASGIApplication  # noqa: PLC0415 -- in the server's process alone
    from neorion.keel.clock import SystemIds  # noqa: PLC0415 -- as above
    from neorion.keel.rpc import (  # noqa: PLC0415 -- as above
        AsgiApp,
        Principal,
        RpcService,
        TokenAuthenticator,
        self_signed,
        serve,
    )

    service = RpcService(FleetASGIApplication, Control(), {"Beat": {"agent"}, "Watch": {"agent"}})
    tokens = TokenAuthenticator({BEARER: Principal("node-1", frozenset({"agent"}))})
    app = AsgiApp([service], ids=SystemIds(), authenticator=tokens)
    with tempfile.TemporaryDirectory() as folder:
        async with serve(app, tls=self_signed(Path(folder) / "tls") if tls else None) as server:
            print(server.port, flush=True)
            await asyncio.to_thread(sys.stdin.read)


async def _beats(port: int, pid: int, *, tls: bool) -> float:
    """Seconds of the server's CPU for each call; the handshakes are before the first one."""
    data = request("Beat", heartbeat("node-1"), "application/proto")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if tls else None
    if context is not None:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    lines = [await asyncio.open_connection("127.0.0.1", port, ssl=context) for _ in range(IN_FLIGHT)]
    for line in lines:
        await call(*line, data)

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(CALLS // IN_FLIGHT):
            await call(reader, writer, data)

    before = cpu_ns(pid)
    async with asyncio.TaskGroup() as group:
        for line in lines:
            group.create_task(one(*line))
    spent = cpu_ns(pid) - before
    for _, writer in lines:
        writer.close()
    return spent / 1e9 / CALLS


if __name__ == "__main__":
    asyncio.run(_serve(tls=sys.argv[1] == "tls"))
