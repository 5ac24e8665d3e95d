"""Reaches into the pods of servers by the API server's exec, as their users do."""

import anyio

from neorion.devservers.decide import PROBE, PROBE_OUTPUT_MAX
from neorion.keel.base import Deadline, Terminal
from neorion.keel.kube import ObjectKey
from neorion.keel.kube.client import Client
from neorion.keel.kube.streams import ContainerRef, OutputStream, execute

# A server that is too busy to answer in this time is probed again later.
PATIENCE_S = 15.0


# Each terminal in the background, because one that was halted with Ctrl-S would block the others.
_WRITE = """
for tty in /dev/pts/[0-9]*; do
  [ -w "$tty" ] && (printf '\\r\\n\\a%s\\r\\n' "$1" >"$tty") </dev/null >/dev/null 2>&1 &
done
"""


class PodExec:
    """Runs shell scripts of ours in a server's container."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def probe(self, pod: ObjectKey) -> str:
        return await self._run(pod, PROBE)

    async def write(self, pod: ObjectKey, text: str) -> None:
        await self._run(pod, _WRITE, text)

    async def _run(self, pod: ObjectKey, script: str, *words: str) -> str:
        where = ContainerRef(pod.name, pod.namespace, "dev")
        try:
            with anyio.fail_after(PATIENCE_S):
                return await self._output_of(where, ["/bin/sh", "-c", script, "sh", *words])
        except TimeoutError:
            raise Deadline(
                "devservers.no_answer",
                f"The pod {pod} did not answer within {PATIENCE_S:.0f} s.",
                hint="Wait for the next probe.",
            ) from None

    async def _output_of(self, where: ContainerRef, command: list[str]) -> str:
        collected = bytearray()
        async with execute(self._client, where, command) as process:
            async for output in process:
                if output.stream is OutputStream.STDOUT:
                    collected += output.data
                if len(collected) > PROBE_OUTPUT_MAX:
                    raise Terminal(
                        "devservers.too_many_words",
                        f"The pod {where.namespace}/{where.pod} wrote more than {PROBE_OUTPUT_MAX} bytes.",
                        hint="Look for a program in its image that replaces a standard one.",
                    )
        return collected.decode(errors="replace")
