"""Who we are to the server, and how it stays true while tokens and certificates come and go."""

import json
import os
import pty
import ssl
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
import trustme
from aiohttp import web
from cryptography.hazmat.primitives import serialization

from neorion.keel.base import Deadline, Duration, Error, Instant, Invalid, Terminal, Unauthenticated
from neorion.keel.kube import time_text
from neorion.keel.kube.client import (
    CaBundle,
    Client,
    ClientCertificate,
    ClusterConfig,
    ExecPlugin,
    Impersonation,
    StaticToken,
    TokenFile,
)
from neorion.keel.kube.client.cluster_config import Source
from neorion.keel.kube.core import CONFIG_MAP
from tests.keel.kube.stage import LeapClock, client_of, serving, status

pytestmark = pytest.mark.anyio

V1 = "client.authentication.k8s.io/v1"
# Prints a credential whose token counts how often it was run.
PLUGIN = """
import json, os, pathlib, sys
runs = pathlib.Path(sys.argv[1])
count = int(runs.read_text() or 0) + 1 if runs.exists() else 1
runs.write_text(str(count))
told = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
status = {"token": f"{os.environ['PREFIX']}-{count}", "expirationTimestamp": sys.argv[2]}
print(json.dumps({"apiVersion": told["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


class Door:
    """Lets in whoever has the right token, and remembers the headers of all."""

    def __init__(self, token: str = "") -> None:
        self.token = token
        self.seen: list[web.Request] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.seen.append(request)
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return status(401, "Unauthorized", "Unauthorized")
        return web.json_response({"metadata": {"name": "a"}})


def plugin(folder: Path, expires: Instant, **more: object) -> ExecPlugin:
    command = (sys.executable, "-c", PLUGIN, str(folder / "runs"), time_text(expires))
    return ExecPlugin(command, V1, {"PREFIX": "made"}, **more)  # pyright: ignore[reportArgumentType] -- a test's own


async def get(client: Client) -> None:
    await client.get(CONFIG_MAP, "a", "n")


async def ask(door: Door, source: Source | None, **more: object) -> None:
    async with serving(door.answer) as server:
        cluster = ClusterConfig(server, source=source, **more)  # pyright: ignore[reportArgumentType] -- a test's own
        async with client_of(cluster, LeapClock()) as client:
            await get(client)


@pytest.mark.parametrize(
    "holder",
    [
        StaticToken("secret"),
        ClientCertificate("chain", "secret"),
        ExecPlugin(("login",), V1, {"KEY": "secret"}),
    ],
    ids=["token", "key", "environment"],
)
def test_a_secret_is_not_in_the_text_of_what_holds_it(holder: object):
    assert "secret" not in repr(holder)


async def test_a_token_goes_with_each_request():
    await ask(Door("secret"), StaticToken("secret"))


async def test_a_refused_token_that_cannot_change_is_not_tried_again():
    door = Door("other")
    with pytest.raises(Unauthenticated) as refused:
        await ask(door, StaticToken("secret"))
    assert refused.value.code == "kube.unauthenticated"
    assert "secret" not in str(refused.value)
    assert len(door.seen) == 1


async def test_a_token_file_is_read_again_when_it_is_old_or_refused(tmp_path: Path):
    file, clock, door = tmp_path / "token", LeapClock(), Door("one")
    file.write_text("one\n")
    async with (
        serving(door.answer) as server,
        client_of(ClusterConfig(server, source=TokenFile(file)), clock) as client,
    ):
        await get(client)
        # The old token is refused: the new one is fetched at once.
        file.write_text("two")
        door.token = "two"
        await get(client)
        assert len(door.seen) == 3
        # The old token is still good, but old: the new one is used without being asked.
        file.write_text("three")
        door.token = ""
        clock.advance(Duration.of(seconds=61))
        await get(client)
        assert door.seen[-1].headers["Authorization"] == "Bearer three"


async def test_a_token_goes_on_while_its_file_is_written_anew_unless_the_server_refuses_it(tmp_path: Path):
    file, clock, door = tmp_path / "token", LeapClock(), Door("one")
    file.write_text("one")
    async with (
        serving(door.answer) as server,
        client_of(ClusterConfig(server, source=TokenFile(file)), clock) as client,
    ):
        await get(client)
        file.write_text("")
        clock.advance(Duration.of(seconds=61))
        await get(client)
        file.unlink()
        clock.advance(Duration.of(seconds=61))
        await get(client)
        door.token = "two"
        with pytest.raises(Invalid) as refused:
            await get(client)
        assert refused.value.code == "kube.token_file"
        file.write_text("two")
        await get(client)


async def test_a_token_file_that_is_empty_is_refused_with_its_path(tmp_path: Path):
    (tmp_path / "token").touch()
    with pytest.raises(Invalid) as refused:
        await ask(Door(), TokenFile(tmp_path / "token"))
    assert refused.value.code == "kube.token_file"


async def test_a_plugin_runs_once_until_its_credential_ends(tmp_path: Path):
    clock, door = LeapClock(), Door()
    made = plugin(tmp_path, clock.now() + Duration.of(minutes=10))
    async with serving(door.answer) as server, client_of(ClusterConfig(server, source=made), clock) as client:
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(get, client)
        assert {request.headers["Authorization"] for request in door.seen} == {"Bearer made-1"}
        clock.advance(Duration.of(minutes=10))
        await get(client)
        assert door.seen[-1].headers["Authorization"] == "Bearer made-2"


async def test_a_plugin_runs_again_when_the_server_refuses_what_it_gave(tmp_path: Path):
    clock, door = LeapClock(), Door("made-2")
    made = plugin(tmp_path, clock.now() + Duration.of(hours=10))
    async with serving(door.answer) as server, client_of(ClusterConfig(server, source=made), clock) as client:
        await get(client)
    assert len(door.seen) == 2


async def test_a_plugin_that_fails_runs_once_for_all_who_wait_and_again_for_who_comes_later(tmp_path: Path):
    """Each that waited ran it again: of a hundred, the last heard after a hundred times its minute."""
    runs, codes = tmp_path / "runs", list[str]()
    failing = ExecPlugin(("sh", "-c", f"echo >> {runs}; exit 1"), V1)

    async def fail(client: Client) -> None:
        with pytest.raises(Terminal) as refused:
            await get(client)
        codes.append(refused.value.code)

    async with client_of(ClusterConfig("http://127.0.0.1:9", source=failing), LeapClock()) as client:
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(fail, client)
        assert codes == ["kube.exec_failed"] * 10
        assert len(runs.read_text()) == 1
        await fail(client)
        assert len(runs.read_text()) == 2


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("/no/such/plugin",), "kube.exec_missing"),
        ((sys.executable, "-c", "import sys; sys.exit('log in first')"), "kube.exec_failed"),
        ((sys.executable, "-c", "print('{}')"), "kube.exec_form"),
        ((sys.executable, "-c", "print('half a secr')"), "kube.exec_form"),
    ],
    ids=["missing", "fails", "empty", "text"],
)
async def test_a_plugin_that_gives_nothing_is_an_error_that_helps(command: tuple[str, ...], code: str):
    with pytest.raises(Error) as refused:
        await ask(Door(), ExecPlugin(command, V1, install_hint="apt install the-plugin"))
    assert refused.value.code == code
    assert "half a secr" not in str(refused.value)
    if isinstance(refused.value, Terminal):
        assert refused.value.hint == "apt install the-plugin"


async def test_a_plugin_that_hangs_is_given_up():
    hanging = ExecPlugin((sys.executable, "-c", "input() or open('/dev/tty')"), V1)
    slow = ExecPlugin(("sleep", "60"), V1, timeout=Duration.of(ms=200))
    with pytest.raises(Error):
        # Its input is at its end, so it cannot wait for somebody to type.
        await ask(Door(), hanging)
    with pytest.raises(Deadline) as refused:
        await ask(Door(), slow)
    assert refused.value.code == "kube.exec_slow"


_SHOWS_A_CODE = """
import anyio
from neorion.keel.base import Deadline, Duration
from neorion.keel.kube.client import ExecPlugin
from neorion.keel.kube.client.exec_plugin import run_plugin
command = ("sh", "-c", "echo enter the code ABC >&2; sleep 60")
try:
    anyio.run(run_plugin, ExecPlugin(command, "client.authentication.k8s.io/v1", timeout=Duration.of(seconds=1)))
except Deadline as error:
    print(error.sentence)
"""


def test_what_a_plugin_says_while_it_waits_is_shown_to_whom_watches_and_told_when_it_is_given_up():
    """Logins on another device: nobody could enter a code that is not shown."""
    watcher, terminal = pty.openpty()
    os.set_blocking(watcher, False)
    try:
        done = subprocess.run(
            [sys.executable, "-c", _SHOWS_A_CODE], stdout=subprocess.PIPE, stderr=terminal, check=True
        )
        assert os.read(watcher, 100) == b"enter the code ABC\r\n"
    finally:
        os.close(watcher)
        os.close(terminal)
    assert done.stdout.endswith(b"gave no credentials within 1s: enter the code ABC\n")


async def test_a_plugin_is_told_about_its_cluster_when_it_wants_to_know(tmp_path: Path):
    copy = tmp_path / "told"
    command = (
        sys.executable,
        "-c",
        f"import os; open({str(copy)!r}, 'w').write(os.environ['KUBERNETES_EXEC_INFO'])",
    )
    with pytest.raises(Invalid):
        await ask(Door(), ExecPlugin(command, V1, cluster_info={"server": "https://x", "config": {"a": 1}}))
    told = json.loads(copy.read_text())
    assert told["spec"] == {"interactive": False, "cluster": {"server": "https://x", "config": {"a": 1}}}


async def test_acting_as_another_sends_that_ones_name_and_keeps_the_own_token():
    door = Door("mine")
    async with serving(door.answer) as server:
        cluster = ClusterConfig(server, source=StaticToken("mine"))
        async with client_of(cluster, LeapClock()) as client:
            await get(client.acting_as("ann", ["devs", "ops"]))
            await get(client)
    first, second = (request.headers for request in door.seen)
    assert first["Impersonate-User"] == "ann"
    assert first.getall("Impersonate-Group") == ["devs", "ops"]
    assert "Impersonate-User" not in second


@pytest.mark.parametrize("name", ["", "ann\r\nImpersonate-Group: system:masters", "ann\x00"])
async def test_a_name_that_would_smuggle_a_header_is_refused(name: str):
    async with client_of(ClusterConfig("http://127.0.0.1:9"), LeapClock()) as client:
        with pytest.raises(Invalid) as refused:
            client.acting_as(name)
    assert refused.value.code == "kube.impersonation"


async def test_extras_of_an_impersonation_are_encoded():
    door = Door()
    whom = Impersonation("ann", (), "7", {"example.com/Team": ("a", "b")})
    await ask(door, None, acting_as=whom)
    headers = door.seen[0].headers
    assert headers["Impersonate-Uid"] == "7"
    assert headers.getall("Impersonate-Extra-example.com%2FTeam") == ["a", "b"]


class Authority:
    """A certificate authority, a server of its own, and clients."""

    def __init__(self) -> None:
        self._ca = trustme.CA()
        self.pem = self._ca.cert_pem.bytes().decode()
        self.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._ca.issue_cert("kubernetes.default", "127.0.0.1").configure_cert(self.tls)
        self._ca.configure_trust(self.tls)
        self.tls.verify_mode = ssl.CERT_OPTIONAL

    def client(self, name: str) -> ClientCertificate:
        made = self._ca.issue_cert(common_name=name)
        chain = b"".join(pem.bytes() for pem in made.cert_chain_pems)
        return ClientCertificate(chain.decode(), made.private_key_pem.bytes().decode())


_LOADS = """
import sys
from neorion.keel.base import Invalid
from neorion.keel.kube.client.cluster_config import ClientCertificate, CaBundle
from neorion.keel.kube.client.tls import tls_context
try:
    tls_context(CaBundle(), ClientCertificate(*sys.argv[1:]))
except Invalid as error:
    print(error.code)
"""


def test_a_key_behind_a_passphrase_is_refused_and_nobody_is_asked_for_it():
    whole = Authority().client("ann")
    key = serialization.load_pem_private_key(whole.key.encode(), None)
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
    behind = key.private_bytes(*form, serialization.BestAvailableEncryption(b"secret")).decode()
    done = subprocess.run(
        [sys.executable, "-c", _LOADS, whole.chain, behind],
        input=b"secret\n",
        capture_output=True,
        start_new_session=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == (b"kube.certificate\n", b"")


async def common_name(request: web.Request) -> web.Response:
    found = request.get_extra_info("peercert") or {"subject": ()}
    names = [value for part in found["subject"] for key, value in part if key == "commonName"]
    return web.json_response({"metadata": {"name": "".join(names)}})


@pytest.mark.parametrize("how", ["authority", "insecure", "name"])
async def test_a_client_certificate_says_who_comes(how: str):
    authority = Authority()
    trust = {
        "authority": CaBundle(authority.pem),
        "insecure": CaBundle(insecure=True),
        "name": CaBundle(authority.pem, "kubernetes.default"),
    }
    async with serving(common_name, authority.tls) as server:
        cluster = ClusterConfig(server, trust[how], authority.client("ann"))
        async with client_of(cluster, LeapClock()) as client:
            assert (await client.get(CONFIG_MAP, "a", "n")).meta.name == "ann"


@pytest.mark.parametrize("how", ["name", "authority"])
async def test_a_server_that_cannot_prove_itself_gets_nothing(how: str):
    authority, clock = Authority(), LeapClock()
    trust = {"name": CaBundle(authority.pem, "another.name"), "authority": CaBundle(Authority().pem)}
    async with (
        serving(common_name, authority.tls) as server,
        client_of(ClusterConfig(server, trust[how]), clock) as client,
    ):
        with pytest.raises(Terminal) as refused:
            await client.get(CONFIG_MAP, "a", "n")
    assert refused.value.code == "kube.untrusted"
    assert clock.slept == []
