"""Certificates, keys and authorities that others renew in their files while a client runs."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from aiohttp import web

from neorion.keel.base import Duration, Terminal, Unauthenticated
from neorion.keel.kube.client import Client, ClusterConfig, read_kubeconfig
from neorion.keel.kube.core import CONFIG_MAP
from tests.keel.kube.client.test_credentials import Authority, common_name
from tests.keel.kube.client.test_kubeconfig import document, written
from tests.keel.kube.stage import Handler, LeapClock, client_of, serving, status

pytestmark = pytest.mark.anyio

A_MINUTE = Duration.of(seconds=61)


class Files:
    """The files that a kubeconfig names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority()
        self.give("ann")
        self.trust(self.authority)

    def give(self, name: str) -> None:
        made = self.authority.client(name)
        written(self.folder / "cert", made.chain)
        written(self.folder / "key", made.key)

    def trust(self, authority: Authority) -> None:
        written(self.folder / "ca", authority.pem)

    def cluster(self, server: str) -> ClusterConfig:
        user: dict[str, object] = {"client-certificate": "cert", "client-key": "key"}
        content = document(user, server=server, **{"certificate-authority": "ca"})
        return read_kubeconfig([written(self.folder / "config", content)]).cluster()


@asynccontextmanager
async def client_with(
    files: Files, clock: LeapClock, handler: Handler = common_name
) -> AsyncGenerator[Client]:
    """A client with these files, of a server of their authority."""
    async with (
        serving(handler, files.authority.tls) as server,
        client_of(files.cluster(server), clock) as client,
    ):
        yield client


async def seen(client: Client) -> str:
    """Whom the server took us for."""
    return (await client.get(CONFIG_MAP, "a", "n")).meta.name


async def test_a_renewed_certificate_is_used_within_a_minute_and_on_no_older_connection(tmp_path: Path):
    files, clock = Files(tmp_path), LeapClock()
    async with client_with(files, clock) as client:
        assert await seen(client) == "ann"
        files.give("ann-renewed")
        clock.advance(A_MINUTE)
        assert await seen(client) == "ann-renewed"
        # Others that came over the old one do not find it again either.
        assert await seen(client.acting_as("bob")) == "ann-renewed"


async def test_a_certificate_that_the_server_refuses_is_read_again_at_once(tmp_path: Path):
    files = Files(tmp_path)

    async def answer(request: web.Request) -> web.StreamResponse:
        # As an API server does with one that has expired.
        known = await common_name(request)
        return known if b"renewed" in (known.body or b"") else status(401, "Unauthorized")  # pyright: ignore[reportOperatorIssue] -- bytes

    async with client_with(files, LeapClock(), answer) as client:
        with pytest.raises(Unauthenticated):
            await seen(client)
        files.give("ann-renewed")
        assert await seen(client) == "ann-renewed"


@pytest.mark.parametrize("broken", ["", "half of it", None], ids=["empty", "cut", "of another pair"])
async def test_a_pair_that_is_half_written_does_not_end_what_works(tmp_path: Path, broken: str | None):
    files, clock = Files(tmp_path), LeapClock()
    async with client_with(files, clock) as client:
        assert await seen(client) == "ann"
        made = files.authority.client("ann-renewed")
        written(tmp_path / "cert", made.chain if broken is None else broken)
        clock.advance(A_MINUTE)
        assert await seen(client) == "ann"
        written(tmp_path / "cert", made.chain)
        written(tmp_path / "key", made.key)
        clock.advance(A_MINUTE)
        assert await seen(client) == "ann-renewed"


async def test_files_that_go_away_leave_what_they_held(tmp_path: Path):
    files, clock = Files(tmp_path), LeapClock()
    async with client_with(files, clock) as client:
        for name in ("ca", "cert", "key"):
            (tmp_path / name).unlink()
        clock.advance(A_MINUTE)
        assert await seen(client) == "ann"


async def test_a_renewed_authority_is_read_when_the_server_shows_what_the_old_one_did_not_sign(
    tmp_path: Path,
):
    files = Files(tmp_path)
    files.trust(Authority())
    async with client_with(files, LeapClock()) as client:
        with pytest.raises(Terminal) as refused:
            await seen(client)
        assert refused.value.code == "kube.untrusted"
        files.trust(files.authority)
        assert await seen(client) == "ann"


async def test_an_authority_that_is_emptied_lets_nobody_else_in(tmp_path: Path):
    """No authorities at all would mean those of the system."""
    files, clock = Files(tmp_path), LeapClock()
    async with client_with(files, clock) as client:
        await seen(client)
        written(tmp_path / "ca", "")
        clock.advance(A_MINUTE)
        assert await seen(client) == "ann"


async def test_a_watch_goes_on_while_the_certificate_is_renewed(tmp_path: Path):
    files, clock = Files(tmp_path), LeapClock()
    renewed = anyio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        if not request.path.endswith("/log"):
            return await common_name(request)
        stream = web.StreamResponse()
        await stream.prepare(request)
        await stream.write(b"one")
        await renewed.wait()
        await stream.write(b"two")
        return stream

    async with (
        client_with(files, clock, answer) as client,
        client.logs("p", "n") as pieces,
    ):
        assert await anext(pieces) == b"one"
        files.give("ann-renewed")
        clock.advance(A_MINUTE)
        assert await seen(client) == "ann-renewed"
        renewed.set()
        assert await anext(pieces) == b"two"
