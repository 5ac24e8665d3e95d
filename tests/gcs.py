"""A stand-in for Google's object store on loopback, with one bucket: the XML API, for whoever holds the account's key."""

import base64
import hashlib
import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.bucket import BUCKET

_ACCOUNT = "iris@project.iam.gserviceaccount.com"
_DATE = "Mon, 16 Nov 2026 12:00:00 GMT"


@dataclass
class Shelf:
    """What the bucket holds, and what is on its way there in parts."""

    key: rsa.RSAPublicKey
    objects: dict[str, bytes] = field(default_factory=dict[str, bytes])
    parts: dict[str, dict[int, bytes]] = field(default_factory=dict[str, dict[int, bytes]])

    def knows(self, authorization: str) -> bool:
        """A JWT that the account signed itself."""
        token = authorization.removeprefix("Bearer ")
        signed, _, signature = token.rpartition(".")
        try:
            self.key.verify(_bytes(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
            claims = json.loads(_bytes(signed.partition(".")[2]))
        except (InvalidSignature, ValueError):
            return False
        return claims["iss"] == _ACCOUNT and claims["scope"].endswith("/auth/cloud-platform")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    shelf: Shelf

    def handle_any(self) -> None:
        url = urlsplit(self.path)
        bucket, _, name = url.path.removeprefix("/").partition("/")
        query = {key: values[0] for key, values in parse_qs(url.query, keep_blank_values=True).items()}
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if not self.shelf.knows(self.headers.get("authorization", "")):
            self._answer(HTTPStatus.UNAUTHORIZED)
        elif bucket != BUCKET:
            self._answer(HTTPStatus.NOT_FOUND)
        else:
            getattr(self, f"_{self.command.lower()}")(unquote(name), query, body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815 -- http.server's names

    def _put(self, name: str, query: dict[str, str], body: bytes) -> None:
        if "uploadId" in query:
            self.shelf.parts[query["uploadId"]][int(query["partNumber"])] = body
        else:
            self.shelf.objects[name] = body
        self._answer(HTTPStatus.OK, tag=_tag(body))

    def _post(self, name: str, query: dict[str, str], body: bytes) -> None:
        if "uploads" in query:
            upload = f"upload-{len(self.shelf.parts)}"
            self.shelf.parts[upload] = {}
            told = f"<Bucket>{BUCKET}</Bucket><Key>{name}</Key><UploadId>{upload}</UploadId>"
            self._answer(
                HTTPStatus.OK,
                f"<InitiateMultipartUploadResult>{told}</InitiateMultipartUploadResult>".encode(),
            )
            return
        parts = self.shelf.parts.pop(query["uploadId"])
        numbers = [int(number) for number in re.findall(rb"<PartNumber>(\d+)</PartNumber>", body)]
        whole = b"".join(parts[number] for number in numbers)
        self.shelf.objects[name] = whole
        told = f"<ETag>{_tag(whole)}</ETag>"
        self._answer(
            HTTPStatus.OK, f"<CompleteMultipartUploadResult>{told}</CompleteMultipartUploadResult>".encode()
        )

    def _get(self, name: str, query: dict[str, str], body: bytes) -> None:
        del query, body
        found = self.shelf.objects.get(name)
        if found is None:
            self._answer(HTTPStatus.NOT_FOUND)
            return
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("range", ""))
        if asked is None:
            self._answer(HTTPStatus.OK, found, tag=_tag(found))
            return
        first, last = int(asked[1]), min(int(asked[2]), len(found) - 1)
        span = f"bytes {first}-{last}/{len(found)}"
        self._answer(HTTPStatus.PARTIAL_CONTENT, found[first : last + 1], tag=_tag(found), span=span)

    _head = _get

    def _delete(self, name: str, query: dict[str, str], body: bytes) -> None:
        del query, body
        gone = self.shelf.objects.pop(name, None) is None
        self._answer(HTTPStatus.NOT_FOUND if gone else HTTPStatus.NO_CONTENT)

    def _answer(self, status: HTTPStatus, body: bytes = b"", *, tag: str = "", span: str = "") -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.send_header("last-modified", _DATE)
        self.send_header("x-goog-generation", "1")
        for name, value in (("etag", tag), ("content-range", span)):
            if value:
                self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- http.server's name
        """Nobody reads it."""


def _tag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


@contextmanager
def gcs(folder: Path) -> Generator[dict[str, str]]:
    """The variables by which clients find it: the file of an account that it knows."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    handler = type("Handler", (_Handler,), {"shelf": Shelf(key.public_key())})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield {
            "GOOGLE_SERVICE_ACCOUNT": str(_account(folder / "account.json", key, server.server_port)),
            "GOOGLE_ALLOW_HTTP": "true",
        }
        server.shutdown()


def stranger(folder: Path, variables: dict[str, str]) -> dict[str, str]:
    """The variables of an account that it does not know."""
    port = json.loads(Path(variables["GOOGLE_SERVICE_ACCOUNT"]).read_text())["gcs_base_url"].rpartition(":")[
        2
    ]
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return {**variables, "GOOGLE_SERVICE_ACCOUNT": str(_account(folder / "stranger.json", key, int(port)))}


def _account(path: Path, key: rsa.RSAPrivateKey, port: int) -> Path:
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    account = {
        "type": "service_account",
        "client_email": _ACCOUNT,
        "private_key": pem.decode(),
        "private_key_id": "1",
        "gcs_base_url": f"http://127.0.0.1:{port}",
    }
    path.write_text(json.dumps(account))
    return path
