"""Strangers who hold more connections than a server has do not keep new callers waiting."""

import http.client
import subprocess
import sys
from contextlib import closing

import pytest

from tests.attacks.test_crowding import idle_connections

pytestmark = [pytest.mark.attack("idle-connections"), pytest.mark.timeout(120)]

SERVER = """
import resource, sys, anyio
resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400))
from neorion.keel.clock import SystemIds
from neorion.keel.rpc import AsgiApp, Principal, RouteResponse, Route, TokenAuthenticator, serve, server
async def page(request):
    return RouteResponse(b"ok")
async def nothing(*_):
    pass
async def main():
    if sys.argv[1] == "kept":
        server.keep_room = nothing
    known = TokenAuthenticator({"secret": Principal("ann", frozenset({"user"}))})
    app = AsgiApp(routes=[Route("GET", "/page", page, frozenset({"user"}))], ids=SystemIds(), authenticator=known)
    async with serve(app) as running:
        print(running.port, flush=True)
        await anyio.sleep_forever()
anyio.run(main)
"""
# More than the server takes, with its reserve.
STRANGERS = 200


def get(connection: http.client.HTTPConnection) -> int:
    connection.request("GET", "/page", headers={"Authorization": "Bearer secret"})
    answer = connection.getresponse()
    answer.read()
    return answer.status


@pytest.mark.parametrize("how", ["displaced", "kept"])
def test_a_newcomer_is_answered_and_an_older_caller_stays(how: str) -> None:
    command = [sys.executable, "-c", SERVER, how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            port = int(server.stdout.readline())
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as older:
                assert get(older) == 200
                socket = older.sock
                with idle_connections(port, STRANGERS):
                    patience = 20 if how == "displaced" else 2
                    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=patience)) as newcomer:
                        if how == "displaced":
                            assert get(newcomer) == 200
                        else:
                            with pytest.raises(TimeoutError):
                                get(newcomer)
                # The same connection: it was idle for longest, and has shown a token.
                assert get(older) == 200
                assert older.sock is socket
        finally:
            server.kill()
