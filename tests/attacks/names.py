"""A client of an API server whose name server misbehaves, in namespaces of its own: `names.py`.

Prints the outcome of each name as JSON: the name of the object, or the code of the error, and the seconds it took.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import anyio
from aiohttp import web

from neorion.keel.base import Duration, Error
from neorion.keel.clock import SystemClock
from neorion.keel.http import dialer
from neorion.keel.kube.client import ClusterConfig
from neorion.keel.kube.core import CONFIG_MAP
from tests.keel.kube.stage import LeapClock, client_of, serving

RESOLV = "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"
CONNECT_S = 2.0
# Before an answer.
DELAYS = {"good": Duration(0), "missing": Duration(0), "slow": Duration.of(ms=300), "flip": Duration(0)}
NXDOMAIN, NOERROR = 3, 0


class NameServer:
    """Answers for `missing` that it does not exist, for `slow` late, for `silent` never, and for `flip` in turns."""

    def __init__(self) -> None:
        self._flips = 0

    async def serve(self) -> None:
        async with await anyio.create_udp_socket(local_host="127.0.0.1", local_port=53) as udp:
            async for query, sender in udp:
                kind = query[13 : 13 + query[12]].decode()
                if kind in DELAYS:
                    await SystemClock().sleep(DELAYS[kind])
                    await udp.sendto(self._answer(kind, query), *sender)

    def _answer(self, kind: str, query: bytes) -> bytes:
        end = query.index(b"\0", 12) + 5
        question, kind_of = query[12:end], query[end - 4 : end - 2]
        if kind == "missing" or kind_of != b"\0\x01":
            code = NXDOMAIN if kind == "missing" else NOERROR
            return query[:2] + bytes([0x81, 0x80 | code]) + b"\0\x01\0\0\0\0\0\0" + question
        self._flips += kind == "flip"
        # Nothing listens on every second address.
        address = b"\x7f\0\0\x02" if self._flips % 2 and kind == "flip" else b"\x7f\0\0\x01"
        record = b"\xc0\x0c\0\x01\0\x01\0\0\0\0\0\x04" + address
        return query[:2] + b"\x81\x80\0\x01\0\x01\0\0\0\0" + question + record


async def config_map(_request: web.Request) -> web.StreamResponse:
    return web.json_response({"kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}})


async def outcome(host: str, port: str) -> list[object]:
    clock = SystemClock()
    begun = clock.monotonic()
    async with client_of(ClusterConfig(f"http://{host}.test:{port}"), LeapClock()) as client:
        try:
            answer = (await client.get(CONFIG_MAP, "a", "n")).meta.name
        except Error as error:
            answer = error.code
    return [answer, clock.monotonic() - begun]


async def main() -> None:
    dialer.CONNECT_S_MAX = CONNECT_S
    await anyio.run_process(["ip", "link", "set", "lo", "up"])
    with tempfile.NamedTemporaryFile("w") as resolv:
        Path(resolv.name).write_text(RESOLV)
        await anyio.run_process(["mount", "--bind", resolv.name, "/etc/resolv.conf"])
        found: dict[str, list[object]] = {}
        async with anyio.create_task_group() as tasks, serving(config_map) as server:
            tasks.start_soon(NameServer().serve)
            port = server.rpartition(":")[2]
            found = {
                host: await outcome(host, port) for host in ("good", "missing", "slow", "silent", "flip")
            }
            tasks.cancel_scope.cancel()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    assert subprocess.check_output(["ip", "-o", "link"]).count(b"\n") == 1, "not a network of its own"
    anyio.run(main)
