"""Values and files of any size, through buckets and folders; and who unpickles them."""

import os
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from neorion.iris.client import IrisClient
from neorion.keel.base import Invalid
from tests.bucket import BUCKET, s3
from tests.gcs import gcs
from tests.iris.processes import Cluster

pytestmark = pytest.mark.timeout(360)

SMALL, LARGE = 32 * 2**20, 192 * 2**20


@pytest.fixture(scope="module")
def in_bucket(tmp_path_factory: pytest.TempPathFactory) -> Generator[Cluster]:
    """A cluster whose large blobs are in a bucket."""
    more = f"storage: {{ bundle_prefix: 's3://{BUCKET}/iris' }}\n"
    with s3() as environment, pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        with Cluster(tmp_path_factory.mktemp("iris"), workers=1, more=more) as found:
            yield found


def peak_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def test_a_large_value_goes_through_a_bucket_and_never_whole_through_the_controller(in_bucket: Cluster):
    def make(size: int) -> bytes:
        return os.urandom(size)

    with IrisClient.remote(in_bucket.url) as client:
        assert len(client.wait(client.submit(make, "small", args=(SMALL,)), timeout=60)) == SMALL
        before = peak_bytes(in_bucket.controller.pid)
        assert len(client.wait(client.submit(make, "large", args=(LARGE,)), timeout=120)) == LARGE
        # Parts on their way take some, and the allocator keeps some; to hold it whole only once would take all of it.
        assert peak_bytes(in_bucket.controller.pid) - before < 0.75 * LARGE
    assert not list((in_bucket.controller.folder / "blobs").glob("*"))


def test_an_argument_and_a_bundle_come_out_of_a_bucket(in_bucket: Cluster):
    def length(body: bytes) -> int:
        return len(body)

    with IrisClient.remote(in_bucket.url) as client:
        assert (
            client.wait(client.submit(length, "argument", args=(b"x" * 5_000_000,)), timeout=60) == 5_000_000
        )


def test_an_argument_of_a_job_that_is_refused_is_not_sent(cluster: Cluster, client: IrisClient):
    kept = cluster.controller.folder / "blobs"
    before = list(kept.glob("**/*"))
    with pytest.raises(Invalid) as refused:
        client.submit(len, "refused", args=(os.urandom(5_000_000),), resources={"gpu": "H100:8"})
    assert refused.value.code == "iris.infeasible"
    assert list(kept.glob("**/*")) == before


def test_a_job_whose_blobs_are_googles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def twice(body: bytes) -> bytes:
        return body * 2

    home = tmp_path / "iris"
    with gcs(tmp_path) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        more = f"storage: {{ bundle_prefix: 'gs://{BUCKET}/iris' }}\n"
        with Cluster(home, workers=1, more=more) as found, IrisClient.remote(found.url) as client:
            job = client.submit(twice, "twice", args=(b"x" * 5_000_000,))
            assert client.wait(job, timeout=60) == b"x" * 10_000_000
            assert not list((found.controller.folder / "blobs").glob("*"))


def note(path: str, who: str) -> str:
    """Called by whoever unpickles a `Witness`."""
    with Path(path).open("a") as file:
        file.write(f"{who} {os.getpid()}\n")
    return who


class Witness:
    """Writes down in which process it is unpickled."""

    def __init__(self, path: str, who: str) -> None:
        self.path = path
        self.who = who

    def __reduce__(self) -> tuple[Callable[[str, str], str], tuple[str, str]]:
        return note, (self.path, self.who)


def test_nobody_but_the_task_and_the_waiting_client_unpickles(client: IrisClient, tmp_path: Path):
    marks = tmp_path / "marks"

    def work(given: str) -> tuple[int, Witness]:
        assert given == "argument"
        return os.getpid(), Witness(str(marks), "value")

    job = client.submit(work, "witness", args=(Witness(str(marks), "argument"),))
    pid, value = client.wait(job, timeout=60)
    assert value == "value"
    assert marks.read_text() == f"argument {pid}\nvalue {os.getpid()}\n"
