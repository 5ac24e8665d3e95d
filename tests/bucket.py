"""An S3 server of our own on loopback, with one bucket."""

from collections.abc import Generator
from contextlib import contextmanager
from urllib.request import Request, urlopen

from moto.server import ThreadedMotoServer

BUCKET = "blobs"


@contextmanager
def s3() -> Generator[dict[str, str]]:
    """The variables by which clients find it."""
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    with urlopen(Request(f"{address}/{BUCKET}", method="PUT")) as done:  # noqa: S310 -- loopback
        assert done.status == 200
    yield {
        "AWS_ENDPOINT_URL": address,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
    }
    server.stop()
