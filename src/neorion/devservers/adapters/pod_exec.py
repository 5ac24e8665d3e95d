"""Reaches into the pods of servers by the API server's exec, as their users do."""

import anyio

from neorion.devservers.decide import PROBE, WORDS_MAX
from neorion.keel.base import Deadline, Terminal
from neorion.keel.kube import ObjectKey
from neorion.keel.kube.client import Client
from neorion.keel.kube.streams import ContainerRef, OutputStream, execute

# A server so busy that it cannot answer in this time is looked at again later.
PATIENCE_S = 15.0


# Nobody waits for a terminal that was halted with Ctrl-S.
_TELL = """
for tty in /dev/pts/[0-9]*; do
  [ -w "$tty" ] && (printf '\\r\\n\\a%s\\r\\n' "$1" >"$tty") </dev/null >/dev/null 2>&1 &
done
"""


class PodExec:
    """Runs our own small shell programs in the container that is the server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def look(self, pod: ObjectKey) -> str:
        return await self._run(pod, PROBE)

    async def tell(self, pod: ObjectKey, text: str) -> None:
        await self._run(pod, _TELL, text)

    async def _run(self, pod: ObjectKey, script: str, *words: str) -> str:
        where = ContainerRef(pod.name, pod.namespace, "dev")
        try:
            with anyio.fail_after(PATIENCE_S):
                return await self._said(where, ["/bin/sh", "-c", script, "sh", *words])
        except TimeoutError:
            raise Deadline(
                "devservers.no_answer",
                f"The pod {pod} did not answer within {PATIENCE_S:.0f} s.",
                hint="It is asked again by itself.",
            ) from None

    async def _said(self, where: ContainerRef, command: list[str]) -> str:
        said = bytearray()
        async with execute(self._client, where, command) as process:
            async for output in process:
                if output.stream is OutputStream.STDOUT:
                    said += output.data
                if len(said) > WORDS_MAX:
                    raise Terminal(
                        "devservers.too_many_words",
                        f"The pod {where.namespace}/{where.pod} said more than {WORDS_MAX} bytes.",
                        hint="Look for a program in its image that is not what its name says.",
                    )
        return said.decode(errors="replace")
