"""First logins while the API server is killed, with the bastion and the user controller as processes of their own."""

import json
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from subprocess import CompletedProcess

import anyio
import pytest

from neorion.devservers.adapters.users import TenantManager
from neorion.devservers.decide.audit import verify
from neorion.devservers.model.kube_types import LOGIN_POLICIES, USER_REQUESTS, USERS
from neorion.drydock.cluster import Cluster
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock
from tests.devservers.bastion.loopback import make_key
from tests.kube.user_controller import PATIENCE, administered, until

pytestmark = [pytest.mark.anyio, pytest.mark.needs("ssh"), pytest.mark.slow, pytest.mark.timeout(400)]

SYSTEM = "devservers-system"
POLICY = {"metadata": {"name": "default"}, "spec": {"firstLogin": {"certificates": True}}}
USERS_AT_ONCE = [f"user{number}" for number in range(6)]


@asynccontextmanager
async def process(cluster: Cluster, folder: Path, *words: str) -> AsyncGenerator[None]:
    command = [sys.executable, "-m", "neorion.devservers", *words, "--kubeconfig", str(cluster.kubeconfig)]
    with (folder / f"{words[0]}.log").open("ab") as log:
        async with await anyio.open_process(command, stdout=log, stderr=log) as made:
            try:
                yield
            finally:
                made.terminate()


async def login(folder: Path, port: int, user: str) -> "CompletedProcess[bytes]":
    """It ends when the user can work: this bastion has no consoles, and says so."""
    options = {
        "IdentityFile": folder / "key",
        "CertificateFile": folder / "key-cert.pub",
        "IdentitiesOnly": "yes",
        "StrictHostKeyChecking": "no",
        "UserKnownHostsFile": folder / "known_hosts",
        "LogLevel": "ERROR",
        "Port": port,
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    with anyio.fail_after(200):
        return await anyio.run_process(
            ["ssh", "-F", "none", *words, f"{user}@127.0.0.1", "true"], check=False
        )


async def until_listening(port: int) -> None:
    with anyio.fail_after(60):
        while True:
            try:
                async with await anyio.connect_tcp("127.0.0.1", port):
                    return
            except OSError:
                await SystemClock().sleep(Duration.of(ms=100))


async def test_an_api_server_that_is_killed_during_first_logins_leaves_no_half_made_user(
    own_cluster: Cluster, tmp_path: Path
):
    for name in ("ca", "key"):
        await make_key(tmp_path, name)
    sign = ["ssh-keygen", "-q", "-s", str(tmp_path / "ca"), "-I", "x", "-V", "+1h"]
    await anyio.run_process([*sign, "-n", ",".join(USERS_AT_ONCE), str(tmp_path / "key.pub")])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = int(listener.getsockname()[1])
    audit, trusted = tmp_path / "audit.jsonl", ("--user-ca", str(tmp_path / "ca.pub"))
    bastion = ("bastion", "--port", str(port), "--audit", str(audit), "--replica", "bastion-0", *trusted)
    answers: dict[str, str] = {}

    async def one(user: str) -> None:
        answers[user] = (await login(tmp_path, port, user)).stderr.decode()

    async with administered(own_cluster) as admin, AsyncExitStack() as stack:
        await admin.create(LOGIN_POLICIES.raw, POLICY)
        stack.push_async_callback(admin.delete, LOGIN_POLICIES, "default")
        await stack.enter_async_context(process(own_cluster, tmp_path, "user-controller", *trusted))
        await stack.enter_async_context(process(own_cluster, tmp_path, *bastion))
        await until_listening(port)

        async def has_begun() -> bool:
            return bool((await admin.list(USER_REQUESTS, SYSTEM)).items)

        settled = 0
        async with anyio.create_task_group() as clients:
            for user in USERS_AT_ONCE:
                clients.start_soon(one, user)
            await until(has_begun)
            await own_cluster.stop("kube-apiserver")
            settled = len([one for one in answers.values() if "no consoles" in one])
            await own_cluster.start_control_plane()
        assert settled < len(USERS_AT_ONCE), "the kill came too late"
        for user in USERS_AT_ONCE:
            again = (await login(tmp_path, port, user)).stderr.decode()
            assert "This bastion has no consoles." in again, (user, again, answers[user])
            await TenantManager(admin).wait_provisioned(user, PATIENCE)
            things = ["role", "rolebinding", "resourcequota", "limitrange", "networkpolicy"]
            objects = [*(f"{thing}/dev-user" for thing in things), f"serviceaccount/user-{user}"]
            await own_cluster.kubectl("get", "--namespace", f"dev-{user}", *objects)
        assert sorted(one.meta.name for one in (await admin.list(USERS)).items) == USERS_AT_ONCE
    lines = audit.read_bytes().splitlines()
    head, flaws = verify(lines)
    assert (flaws, head.number) == ([], len(lines))
    asked = {record["user"] for line in lines if (record := json.loads(line))["event"] == "provision"}
    assert {user for user, answer in answers.items() if "This is your first login." in answer} <= asked
    assert len([line for line in lines if json.loads(line)["event"] == "login"]) == 2 * len(USERS_AT_ONCE)
