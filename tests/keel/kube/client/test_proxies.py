"""Proxies: those that a kubeconfig or the environment names, and what passes through them."""

import socket
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from anyio.abc import ByteStream

from neorion.keel.base import Retry, Terminal
from neorion.keel.kube.client import CaBundle, ClusterConfig, find_cluster
from neorion.keel.kube.core import CONFIG_MAP
from tests.keel.kube.client.test_connections import listening
from tests.keel.kube.client.test_credentials import Authority, Door, common_name
from tests.keel.kube.client.test_kubeconfig import SERVER, document, written
from tests.keel.kube.stage import LeapClock, client_of, serving

PROXIES = {"HTTPS_PROXY": "proxy.corp:3128", "http_proxy": "http://plain.corp:80"}


class Proxy:
    """Lets through to whatever is asked for, or says no."""

    def __init__(self, refusal: bytes = b"") -> None:
        self.heads: list[bytes] = []
        self._refusal = refusal

    async def serve(self, near: ByteStream) -> None:
        head = await near.receive()
        self.heads.append(head)
        if self._refusal:
            await near.send(self._refusal)
            return
        host, _, port = head.split()[1].decode().removeprefix("http://").partition("/")[0].rpartition(":")
        async with await anyio.connect_tcp(host, int(port)) as far, anyio.create_task_group() as group:
            if head.startswith(b"CONNECT"):
                await near.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                await far.send(head)
            group.start_soon(_carry, near, far)
            await _carry(far, near)
            group.cancel_scope.cancel()


async def _carry(source: ByteStream, target: ByteStream) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for piece in source:
            await target.send(piece)


@pytest.mark.anyio
async def test_a_proxy_passes_tls_on_and_reads_none_of_it():
    authority, proxy = Authority(), Proxy()
    async with serving(common_name, authority.tls) as server, listening(proxy.serve) as way:
        cluster = ClusterConfig(
            server,
            CaBundle(authority.pem),
            authority.client("ann"),
            proxy=way.replace("//", "//me:p%40ss@"),
        )
        async with client_of(cluster, LeapClock()) as client:
            assert (await client.get(CONFIG_MAP, "a", "n")).meta.name == "ann"
    assert proxy.heads[0].startswith(b"CONNECT 127.0.0.1:")
    assert b"Proxy-Authorization: Basic bWU6cEBzcw==\r\n" in proxy.heads[0]


@pytest.mark.anyio
async def test_a_proxy_of_plain_requests_reads_the_whole_address():
    door, proxy = Door(), Proxy()
    async with (
        serving(door.answer) as server,
        listening(proxy.serve) as way,
        client_of(ClusterConfig(server, proxy=way), LeapClock()) as client,
    ):
        assert (await client.get(CONFIG_MAP, "a", "n")).meta.name == "a"
    assert proxy.heads[0].startswith(f"GET {server}/api/v1/namespaces/n/configmaps/a HTTP/1.1\r\n".encode())
    assert len(door.seen) == 1


@pytest.mark.anyio
async def test_the_usual_proxy_is_used_where_the_cluster_names_none():
    door, usual, named = Door(), Proxy(), Proxy()
    async with (
        serving(door.answer) as server,
        listening(usual.serve) as usual_way,
        listening(named.serve) as way,
    ):
        for cluster in (
            ClusterConfig(server, usual_proxy=usual_way),
            ClusterConfig(server, proxy=way, usual_proxy=usual_way),
        ):
            async with client_of(cluster, LeapClock()) as client:
                assert (await client.get(CONFIG_MAP, "a", "n")).meta.name == "a"
    assert (len(usual.heads), len(named.heads)) == (1, 1)


@pytest.mark.anyio
async def test_a_proxy_that_nobody_answers_for_is_named_without_its_password():
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        way = f"127.0.0.1:{nobody.getsockname()[1]}"
        cluster = ClusterConfig("https://cluster.example", usual_proxy=f"http://me:secret@{way}")
        async with client_of(cluster, LeapClock()) as client:
            with pytest.raises(Retry) as away:
                await client.get(CONFIG_MAP, "a", "n")
    assert f"through the proxy {way}, " in away.value.sentence
    assert "secret" not in f"{away.value} {cluster!r}"


@pytest.mark.anyio
async def test_a_proxy_that_refuses_is_named():
    proxy = Proxy(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
    async with (
        listening(proxy.serve) as way,
        client_of(ClusterConfig("https://127.0.0.1:9", proxy=way), LeapClock()) as client,
    ):
        with pytest.raises(Terminal) as refused:
            await client.get(CONFIG_MAP, "a", "n")
    assert "the proxy says 407 Proxy Authentication Required" in refused.value.sentence


@pytest.mark.parametrize(
    ("server", "spared", "proxy"),
    [
        (SERVER, "", "http://proxy.corp:3128"),
        ("http://cluster.example:8080", "", "http://plain.corp:80"),
        (SERVER, "other.example, uster.example,cluster.example:443", "http://proxy.corp:3128"),
        (SERVER, "*", ""),
        (SERVER, "Cluster.Example", ""),
        (SERVER, "example", ""),
        (SERVER, "other, .example", ""),
        (SERVER, "*.example", ""),
        (SERVER, "cluster.example:6443", ""),
        (SERVER, ".cluster.example", "http://proxy.corp:3128"),
        ("https://10.1.2.3:6443", "10.1.0.0/16", ""),
        ("https://10.1.2.3:6443", "10.2.0.0/16,10.1.2", "http://proxy.corp:3128"),
        ("https://10.1.2.3:6443", "10.1.2.3:6443", ""),
        ("https://10.1.2.3:6443", "10.1.2.3:443", "http://proxy.corp:3128"),
        ("https://[fd00::1]:6443", "fd00::1", ""),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", ""),
        ("https://[fd00::1]:6443", "fd00::/8", ""),
        ("https://[fd00::1]:6443", "nonsense/8", "http://proxy.corp:3128"),
        ("https://127.0.0.1:6443", "", ""),
        ("https://localhost:6443", "", ""),
        ("https://[::1]:6443", "", ""),
    ],
)
def test_the_proxy_of_the_environment_is_taken_as_kubectl_takes_it(
    tmp_path: Path, server: str, spared: str, proxy: str
):
    file = written(tmp_path / "config", document(server=server))
    assert find_cluster(file, environ={**PROXIES, "NO_PROXY": spared}).usual_proxy == proxy


def test_the_proxy_of_the_kubeconfig_stays_apart_from_that_of_the_environment(tmp_path: Path):
    file = written(tmp_path / "config", document(None, **{"proxy-url": "http://named.corp:1"}))
    found = find_cluster(file, environ=PROXIES)
    assert (found.proxy, found.usual_proxy) == ("http://named.corp:1", "http://proxy.corp:3128")
    # What a kubeconfig is written from must not hold what only this process was told.
    assert find_cluster(written(tmp_path / "bare", document()), environ=PROXIES).proxy == ""
