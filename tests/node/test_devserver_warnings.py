"""Before a server stops, whoever sits at it is told, and so is whoever listens for the whole cluster."""

import json
import threading
from collections.abc import Generator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any

import pytest

from neorion.drydock.cluster import Cluster
from tests.node.devctl_terminal import Person
from tests.node.devservers import PROGRAM, Devctl, operated
from tests.node.pods import NEEDS

pytestmark = [NEEDS, pytest.mark.timeout(600)]

# What does not come within this long does not come.
PATIENCE_S = 120.0


@dataclass(frozen=True)
class Listener:
    """Somebody's webhook on this machine."""

    url: str
    heard: "Queue[dict[str, Any]]"


@pytest.fixture(scope="module")
def listener() -> Generator[Listener]:
    heard = Queue[dict[str, Any]]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base class's own word
            del format, args

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Listener(f"http://127.0.0.1:{server.server_port}/", heard)
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def devctl(
    node_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, listener: Listener
) -> Generator[Devctl]:
    webhook = {"url": listener.url, "allow_private": True}
    with operated(node_cluster, tmp_path_factory.mktemp("operator"), webhook=webhook) as devctl:
        yield devctl


def test_a_warning_appears_in_every_terminal_and_at_the_webhook_once(devctl: Devctl, listener: Listener):
    devctl.good("create", "warned", "--home-size", "1Gi", "--time", "4h", "--wait")
    people = [Person.start([*PROGRAM, "ssh", "warned"], devctl.env) for _ in range(2)]
    for person in people:
        person.see("# ")
    devctl.change("warned", {"lifecycle": {"warnings": ["5h", "3h"]}})
    sentence = "its time is over; devctl extend warned --time 1h keeps it."
    for person in people:
        assert "The server warned stops at " in person.see(sentence)
    told = listener.heard.get(timeout=PATIENCE_S)
    assert (told["server"], told["namespace"], told["owner"], told["reason"]) == (
        "warned",
        devctl.namespace,
        "ann",
        "Expired",
    )
    assert sentence in told["text"]
    # Another end warns anew, and only of itself.
    devctl.good("extend", "warned", "--time", "30m")
    again = listener.heard.get(timeout=PATIENCE_S)
    assert again["stops"] > told["stops"]
    for person in people:
        person.see(sentence)
        person.type("exit\n")
        assert person.exit_code() == 0
    assert listener.heard.empty()
    devctl.good("delete", "warned", "--yes")
