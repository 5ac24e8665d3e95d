"""What a task raises is raised where it is waited for, also what ends programs; and the client goes on."""

import signal
import sys
from collections.abc import Callable

import pytest

from neorion.iris.client import IrisClient

pytestmark = pytest.mark.timeout(240)


@pytest.mark.parametrize(
    ("end", "argument", "raised"),
    [(sys.exit, 7, SystemExit), (signal.raise_signal, signal.SIGINT, KeyboardInterrupt)],
    ids=["exit", "interrupt"],
)
def test_what_ends_programs_ends_no_client(
    client: IrisClient, end: Callable[[int], None], argument: int, raised: type[BaseException]
):
    with pytest.raises(raised):
        client.wait(client.submit(end, "ends", args=(argument,)), timeout=60)
    with pytest.raises(raised):
        client.map(end, [argument], "ends-map")
    assert client.wait(client.submit(abs, "goes-on", args=(-1,)), timeout=60) == 1
