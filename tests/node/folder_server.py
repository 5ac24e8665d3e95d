"""A folder over HTTP for tasks on nodes: where checkpoints outlive a machine, and where tasks leave marks."""

import http.client
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread


@contextmanager
def folder_server(folder: Path, host: str, on_put: Callable[[str], None] = lambda _: None) -> Generator[str]:
    """Yields its address. `on_put` hears the name of each file before it is written."""

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            path = folder / self.path.strip("/")
            fresh = path.with_name(f"{path.name}.{id(self)}.part")
            fresh.write_bytes(self.rfile.read(int(self.headers["Content-Length"])))
            on_put(path.name)
            fresh.replace(path)
            self.send_response(204)
            self.end_headers()

        def do_GET(self) -> None:
            path = folder / self.path.strip("/")
            data = path.read_bytes() if path.exists() else b""
            self.send_response(200 if path.exists() else 404)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- named by http.server
            """Says nothing."""

    server = ThreadingHTTPServer((host, 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://{host}:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def put_file(store: str, name: str, data: bytes = b"1") -> None:
    """For tasks."""
    _ask(store, "PUT", name, data)


def get_file(store: str, name: str) -> bytes | None:
    """For tasks; None where there is no such file."""
    return _ask(store, "GET", name)


def _ask(store: str, method: str, name: str, data: bytes | None = None) -> bytes | None:
    line = http.client.HTTPConnection(store.removeprefix("http://"), timeout=10)
    try:
        line.request(method, f"/{name}", data)
        answer = line.getresponse()
        body = answer.read()
        return body if answer.status in (200, 204) else None
    finally:
        line.close()
