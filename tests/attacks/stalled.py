"""A command in a container whose peer vanishes, in a network namespace of its own: `stalled.py MILLISECONDS PATIENCE_S`.

Prints the code of the error and the seconds until it was raised, or `standing` when the patience is over.
"""

import subprocess
import sys

import anyio

from neorion.keel.base import Error
from neorion.keel.clock import SystemClock
from neorion.keel.http import dialer
from neorion.keel.kube.streams import execute
from tests.keel.kube.stage import staged
from tests.keel.kube.streams.test_exec import WHERE, cat, kubelet

# Every packet is lost, acknowledgements included: the peer does not even say that it is gone.
DROP = "add table ip f; add chain ip f c { type filter hook output priority 0 ; policy drop ; }"


async def stall(patience_s: float) -> str:
    async with staged(kubelet(cat)) as client, execute(client, WHERE, ["cat"], stdin=True) as process:
        output = aiter(process)
        await process.write(b"before")
        assert (await anext(output)).data == b"before"
        await anyio.run_process(["nft", DROP])
        await process.write(b"after")
        clock = SystemClock()
        begun = clock.monotonic()
        try:
            with anyio.fail_after(patience_s):
                await anext(output)
        except Error as error:
            return f"{error.code} {clock.monotonic() - begun:.1f}"
        except TimeoutError:
            return "standing"
        finally:
            await anyio.run_process(["nft", "delete table ip f"])
    raise AssertionError("the stream answered")


async def main(ms: int, patience_s: float) -> None:
    dialer.UNHEARD_MS = ms
    await anyio.run_process(["ip", "link", "set", "lo", "up"])
    sys.stdout.write(await stall(patience_s))


if __name__ == "__main__":
    assert subprocess.check_output(["ip", "-o", "link"]).count(b"\n") == 1, "not a network of its own"
    anyio.run(main, int(sys.argv[1]), float(sys.argv[2]))
