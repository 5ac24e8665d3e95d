"""An empty secret is known to everybody, so it opens nothing and is nowhere kept."""

from pathlib import Path

import anyio
import pytest

from neorion.keel.base import Invalid
from neorion.keel.clock import SystemIds
from neorion.keel.config import SecretFile, write_secret
from neorion.keel.rpc import Principal, Route, TokenAuthenticator, serve
from neorion.keel.rpc.app import AsgiApp
from neorion.navarch.app.server import _token as operator_token
from tests.keel.rpc.test_http import Answer, read_answer
from tests.keel.rpc.world import health

pytestmark = [pytest.mark.anyio, pytest.mark.attack("empty-secret")]


class Trusting:
    """An authenticator that compares without looking: everything equal to its secret is the operator."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    async def authenticate(self, token: str) -> Principal | None:
        return Principal("operator", frozenset({"operator"})) if token == self._secret else None


async def ask(secret: str, header: str) -> Answer:
    """The answer of a page for operators, whose secret is `secret`."""
    page = Route("GET", "/page", health, frozenset({"operator"}))
    app = AsgiApp(routes=[page], ids=SystemIds(), authenticator=Trusting(secret))
    async with serve(app) as server, await anyio.connect_tcp("127.0.0.1", server.port) as stream:
        await stream.send(f"GET /page HTTP/1.1\r\nhost: x\r\nauthorization: {header}\r\n\r\n".encode())
        return await read_answer(stream)


async def test_an_empty_token_opens_nothing() -> None:
    for header in ("Bearer", "Bearer ", "Bearer    ", "bearer \t"):
        assert (await ask("", header)).status == 401, header


async def test_the_same_request_with_the_secret_is_let_in() -> None:
    assert (await ask("secret", "Bearer secret")).status == 200


@pytest.mark.parametrize("empty", ["", " ", "\n"])
async def test_a_server_with_an_empty_token_does_not_start(empty: str) -> None:
    with pytest.raises(Invalid) as refused:
        TokenAuthenticator({empty: Principal("operator")})
    assert refused.value.code == "rpc.empty_token"


@pytest.mark.parametrize("left", ["", "\n", "  \n"])
async def test_an_empty_token_file_of_navarch_is_written_anew(tmp_path: Path, left: str) -> None:
    path = tmp_path / "operator.token"
    path.write_text(left)
    token = operator_token({}, "127.0.0.1", path, SystemIds())
    assert len(token) >= 32
    assert path.read_text() == token == operator_token({}, "127.0.0.1", path, SystemIds())


async def test_a_secret_file_is_its_owners_alone_and_stays_the_same(tmp_path: Path) -> None:
    path = tmp_path / "key"
    first = SecretFile(path, SystemIds()).value
    assert path.stat().st_mode & 0o777 == 0o600
    assert SecretFile(path, SystemIds()).value == first


async def test_a_secret_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a power cut leaves is what was synced: at the rename that is the whole secret, and then the rename itself."""
    synced: list[tuple[bool, str]] = []
    path = tmp_path / "key"

    def sync(descriptor: int) -> None:
        place = Path(f"/proc/self/fd/{descriptor}").resolve()
        synced.append((path.exists(), "" if place.is_dir() else place.read_text()))

    monkeypatch.setattr("os.fsync", sync)
    write_secret(path, "canary")
    assert synced == [(False, "canary"), (True, "")]
