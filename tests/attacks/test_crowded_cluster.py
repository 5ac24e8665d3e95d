"""A real cluster under attack by strangers: no task is lost."""

import socket
import ssl
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from neorion.iris.client import IrisClient
from tests.attacks import h2
from tests.iris.processes import Cluster

# Longer than the lease, so that a worker that is refused loses its tasks.
pytestmark = [pytest.mark.attack("held-requests"), pytest.mark.slow, pytest.mark.timeout(300)]
LEASE, TASK_S, STREAMS = "8s", 20, 520


@contextmanager
def attack(url: str) -> Generator[None]:
    """Two connections with 520 half-sent requests each, opened again every second."""
    stop = threading.Event()
    place = (urlsplit(url).hostname, urlsplit(url).port)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    tls.set_alpn_protocols(["h2"])
    opening = h2.settings() + b"".join(h2.open_get(number, "/health") for number in range(1, 2 * STREAMS, 2))

    def hold() -> None:
        while not stop.is_set():
            with ExitStack() as stack:
                for _ in range(2):
                    plain = stack.enter_context(socket.create_connection(place, timeout=10))
                    stack.enter_context(tls.wrap_socket(plain)).sendall(opening)
                stop.wait(1)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_a_task_outlives_an_attack_that_is_longer_than_the_lease(tmp_path: Path) -> None:
    with (
        Cluster(tmp_path, workers=1, worker_timeout=LEASE) as cluster,
        IrisClient.remote(cluster.url, user="ann") as client,
    ):
        client.wait(client.submit("true", "first"), timeout=120)
        job = client.submit(f"sleep {TASK_S}", "job")
        with attack(cluster.url):
            client.wait(job, timeout=240)
        (task,) = client.tasks(job)
        assert [attempt.state for attempt in client.attempts(job, 0)] == ["succeeded"], task
