"""Messages of workers, users and servers that cost their reader far more than their sender."""

from pathlib import Path

import aiohttp
import anyio
import pytest
import yaml
from anyio.abc import ByteStream

from neorion.iris.controllers.log_store import PARTS_MAX, LogStore
from neorion.iris.model import AttemptId, JobId
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.base import Duration, Error, Invalid, Terminal
from neorion.keel.clock import SystemClock
from neorion.keel.http import connection_pool
from neorion.keel.rpc.paging import page_size
from neorion.navarch.adapters.notify import WebhookSettings, webhook
from neorion.navarch.adapters.notify.addresses import ForbiddenAddress, forbidden
from neorion.navarch.model import NodeState
from neorion.navarch.testing import node
from tests.iris.serve.office import office
from tests.keel.kube.client.test_connections import listening, names
from tests.keel.kube.client.test_kubeconfig import cluster_in, document

pytestmark = pytest.mark.anyio
JOB, ATTEMPT = JobId("job-1"), AttemptId("attempt-1")


@pytest.mark.attack("log-chunks")
async def test_a_log_full_of_gaps_is_a_few_files(tmp_path: Path) -> None:
    log_store = LogStore(tmp_path)
    for number in range(5_000):
        log_store.append(JOB, ATTEMPT, 2 * number, b"x", gap=True)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) <= PARTS_MAX
    # The newest are kept.
    assert log_store.append(JOB, ATTEMPT, 0, b"") == 9_999


@pytest.mark.attack("log-chunks")
async def test_a_message_of_countless_chunks_is_refused(tmp_path: Path) -> None:
    async with office(tmp_path) as there:
        joined = await there.join(there.slice("slice-a"), "slice-a")
        chunks = [pb.LogChunk(attempt="attempt-1", offset=2 * number, text=b"x") for number in range(5_000)]
        with pytest.raises(Invalid) as refused:
            await there.worker(joined.token).push_logs(
                pb.PushLogsRequest(worker=joined.worker, chunks=chunks)
            )
        assert refused.value.code == "iris.log_chunks"
        few = pb.PushLogsRequest(worker=joined.worker, chunks=chunks[:10])
        assert (await there.worker(joined.token).push_logs(few)).kept


@pytest.mark.attack("negative-limit")
async def test_a_negative_limit_is_refused_everywhere(tmp_path: Path) -> None:
    async with office(tmp_path) as there:
        jobs, cluster = there.jobs("ada"), there.cluster("root")
        for call in (
            lambda: jobs.list(pb.ListRequest(limit=-1)),
            lambda: cluster.audit(pb.AuditRequest(limit=-1)),
        ):
            with pytest.raises(Error) as refused:
                await call()
            assert refused.value.code == "rpc.limit"
        assert (await jobs.list(pb.ListRequest(limit=0))).jobs == []


@pytest.mark.attack("negative-limit")
def test_a_limit_is_never_more_than_a_page() -> None:
    assert [page_size(limit, 100) for limit in (0, 1, 100, 2**31 - 1)] == [100, 1, 100, 100]
    with pytest.raises(Invalid):
        page_size(-1, 100)


# Whoever answers us.


async def endless(stream: ByteStream) -> None:
    """Says that a gigabyte follows, and sends it as long as somebody reads."""
    await stream.receive()
    await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n")
    try:
        while True:
            await stream.send(b" " * 65_536)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        return


@pytest.mark.attack("endless-answer")
async def test_an_answer_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_pool, "BODY_BYTES_MAX", 2**20)
    async with listening(endless) as server:
        with pytest.raises(Terminal) as refused, anyio.fail_after(60):
            await names(server)
    assert "more than 1048576 bytes" in refused.value.sentence


@pytest.mark.attack("insecure-kubeconfig")
def test_an_authority_that_is_not_checked_is_refused(tmp_path: Path) -> None:
    unchecked: dict[str, object] = {"insecure-skip-tls-verify": True}
    both = document(None, **unchecked, **{"certificate-authority-data": "Q0E="})
    with pytest.raises(Invalid) as refused:
        cluster_in(tmp_path / "config", both)
    assert refused.value.code == "kube.insecure_authority"
    assert cluster_in(tmp_path / "config", document(None, **unchecked)).trust.insecure


BOMB = "a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{chr(98 + depth)}: &{chr(98 + depth)} [{','.join(['*' + chr(97 + depth)] * 9)}]\n" for depth in range(9)
)


@pytest.mark.attack("insecure-kubeconfig")
@pytest.mark.parametrize(
    ("text", "code"),
    [
        (BOMB + "clusters: [*j]\n", "kube.config_size"),
        ("clusters: &a [*a]\n", "kube.config_size"),
        # Without the bound this one ends the process.
        ("clusters: " + "[" * 100_000, "kube.config_size"),
        ("current-context: 2001-99-99\n", "kube.config_form"),
        ("current-context: !!int secret\n", "kube.config_form"),
        ("current-context: !!timestamp secret\n", "kube.config_form"),
    ],
)
def test_a_malformed_kubeconfig_is_refused(tmp_path: Path, text: str, code: str) -> None:
    with pytest.raises(Invalid) as refused:
        cluster_in(tmp_path / "config", text)
    assert refused.value.code == code
    assert "secret" not in refused.value.sentence


def test_a_kubeconfig_may_have_aliases(tmp_path: Path) -> None:
    text = yaml.safe_dump(document(None))
    whole = cluster_in(tmp_path / "plain", text)
    shared = text.replace("server: ", "server: &server ") + "note: [*server, *server]\n"
    assert cluster_in(tmp_path / "config", shared) == whole


# Addresses that a person writes into a file.

METADATA = [
    "http://169.254.169.254/latest",
    "http://[::ffff:169.254.169.254]/",
    "http://[fd00:ec2::254]/",
    "http://[fe80::1]/",
    "http://0.0.0.0/",
]


@pytest.mark.attack("request-forgery")
@pytest.mark.parametrize("url", METADATA)
async def test_no_message_for_a_scheduler_goes_to_a_metadata_service(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def connect(*_: object) -> None:
        raise OSError("A test connects to addresses of this machine only.")

    monkeypatch.setattr(aiohttp.TCPConnector, "_create_connection", connect)
    settings = WebhookSettings(cordon_url=url, timeout=Duration.of(seconds=5))
    async with webhook(settings, SystemClock()) as made:
        with pytest.raises(Invalid) as refused:
            await made.cordon(node(state=NodeState.DRAINING), "test")
    assert refused.value.code == "navarch.notify_address"


@pytest.mark.attack("request-forgery")
def test_the_addresses_of_schedulers_are_allowed() -> None:
    """The control: what is refused is refused for what it is."""
    assert not any(forbidden(host) for host in ("10.0.0.7", "127.0.0.1", "8.8.8.8", "::1", "scheduler"))
    assert issubclass(ForbiddenAddress, OSError)


@pytest.mark.attack("foreign-reader")
def test_logs_are_their_owners_alone(tmp_path: Path) -> None:
    LogStore(tmp_path / "logs").append(JOB, ATTEMPT, 0, b"secret")
    files = [path for path in (tmp_path / "logs").rglob("*") if path.is_file()]
    assert [path.stat().st_mode & 0o777 for path in files] == [0o600]
