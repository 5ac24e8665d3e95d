"""A server for programs that do not await."""

import signal
import threading
from typing import Self

import anyio
import pytest

from neorion.devservers.client import AsyncDevServer, DevServer, KubeContext
from neorion.keel.kube.client import ClusterConfig


class Endless(AsyncDevServer):
    """A server that is never ready. Its user presses Ctrl-C."""

    left = False

    async def __aenter__(self) -> Self:
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)
        try:
            await anyio.sleep_forever()
        finally:
            self.left = True
        return self


@pytest.mark.timeout(20)
def test_whoever_does_not_want_to_wait_for_a_server_any_longer_need_not():
    inner = Endless("mydev", KubeContext(ClusterConfig("https://127.0.0.1:1"), "dev-ann"))
    with pytest.raises(KeyboardInterrupt), DevServer(inner):
        pass
    assert inner.left
