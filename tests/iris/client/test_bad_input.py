"""Bad input, one row each: what is sent, and the exact code and hint that come back."""

import hashlib
import io
import stat
import struct
import zipfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, cast

import pytest
from protobuf import Oneof

from neorion.iris.client import AsyncIrisClient, IrisClient
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.base import Error
from tests.iris.client.mistakes import NAME, USER, submit
from tests.iris.processes import Cluster, Program

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(240)]

HEX = hashlib.sha256(b"body").hexdigest()
ABSENT = "0" * 64


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Generator[Cluster]:
    """A cluster whose largest machine has four GPUs."""
    folder = tmp_path_factory.mktemp("iris")
    with Cluster(folder, workers=0) as found:
        machine = Program(
            folder / "gpus",
            *(
                "worker",
                "serve",
                "--controller",
                found.url,
                "--folder",
                str(folder / "gpus"),
                "--token-stdin",
            ),
            *("--gpus", "4", "--gpu-variant", "H100"),
        )
        found.workers.append(machine)
        found.start_worker(machine)
        with IrisClient.remote(found.url, user="zoe") as client:
            # It has joined when something has run on it.
            client.wait(client.submit("true", "trained"), timeout=60)
        yield found


async def refusal(call: Callable[[], Any]) -> Error:
    with pytest.raises(Error) as refused:
        await call()
    return refused.value


# Through the client, as a user writes it.


@pytest.mark.parametrize("case", USER)
async def test_a_users_mistake_is_told_with_a_hint(world: Cluster, case: str):
    call, code, hint = USER[case]
    async with AsyncIrisClient.remote(world.url, user="zoe") as client:
        error = await refusal(lambda: call(client))
    assert (error.code, error.hint) == (code, hint)
    assert error.sentence.endswith(".")


async def test_an_option_of_the_wrong_kind_is_told_in_our_words(world: Cluster):
    async with AsyncIrisClient.remote(world.url, user="zoe") as client:
        told: list[tuple[dict[str, Any], str]] = [
            ({"packages": "numpy"}, "packages must be a list, not a text."),
            ({"environment": {"env": {"A": 1}}}, "environment.env[...] must be a text, not a whole number."),
            ({"timeout": None}, "timeout must be a number or a text, not None."),
        ]
        for option, sentence in told:
            error = await refusal(lambda option=option: submit(**option)(client))
            assert error.sentence == sentence


# Tokens.


@pytest.mark.parametrize(
    ("token", "code", "hint"),
    [
        ("guessed", "rpc.bad_token", "Get a new token."),
        ("task.attempt-1.guessed", "rpc.bad_token", "Get a new token."),
        ("two words", "rpc.token", "Check how it was read."),
    ],
)
async def test_a_token_that_is_not_known_is_refused(world: Cluster, token: str, code: str, hint: str):
    async def call() -> None:
        async with AsyncIrisClient.remote(world.url, token=token) as client:
            await client.jobs()

    error = await refusal(call)
    assert (error.code, error.hint) == (code, hint)


async def test_no_token_at_all_is_refused(world: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    async with AsyncIrisClient.remote(world.url) as client:
        error = await refusal(client.jobs)
    # Without a token there is no pin either, by which the controller's key would be known.
    assert error.code == "rpc.tls"
    assert error.hint.startswith("Give the client a token")


async def test_a_workers_token_submits_nothing(world: Cluster):
    token = (world.controller.folder / "worker.token").read_text()
    async with AsyncIrisClient.remote(world.url, token=token) as client:
        error = await refusal(lambda: client.submit("true", "bad"))
    assert (error.code, error.hint) == ("rpc.role", "Get a token with one of the roles: admin, task, user.")


# Over the raw calls, as no client of ours would.


def spec(**fields: Any) -> pb.SubmitRequest:
    whole: dict[str, Any] = {
        "name": "/zoe/raw",
        "entry": Oneof("command", pb.Command(argv=["true"])),
        "resources": pb.Resources(cpu_milli=100),
        "replicas": 1,
    }
    return pb.SubmitRequest(spec=pb.JobSpec(**(whole | fields)), key="")


def call_of(function: str) -> Any:
    return Oneof("call", pb.Call(function=function))


def put(digest: str, body: bytes, offset: int = 0, *, last: bool = True) -> pb.PutBlobRequest:
    return pb.PutBlobRequest(digest=digest, offset=offset, body=body, last=last)


SHA = "Send it under the SHA-256 of its bytes."
DIGITS = "Use 64 hexadecimal digits in lower case."
with_wrong_blob = spec(entry=call_of(HEX))
with_wrong_blob.blobs = [pb.Blob(digest=HEX, body=b"other")]

RAW: dict[str, tuple[str, Any, str, str]] = {
    "a submission of nothing": ("submit", pb.SubmitRequest(), "iris.spec", "Fill in its spec."),
    "a job that runs nothing": ("submit", spec(entry=None), "iris.entry", "Give one of them."),
    "a command of no words": (
        "submit",
        spec(entry=Oneof("command", pb.Command())),
        "iris.entry",
        "Give one of them.",
    ),
    "a function nobody sent": (
        "submit",
        spec(entry=call_of(ABSENT)),
        "iris.blob_missing",
        "Send the blob first, or with the job.",
    ),
    "a function under a wrong hash": ("submit", with_wrong_blob, "iris.blob_hash", SHA),
    "a hash that is none": ("submit", spec(entry=call_of("../../etc/passwd")), "iris.digest", DIGITS),
    "inputs that do not fit": (
        "submit",
        spec(inputs=[HEX, HEX]),
        "iris.inputs",
        "Give one input for each task, or none.",
    ),
    "less than nothing": (
        "submit",
        spec(resources=pb.Resources(cpu_milli=-1)),
        "iris.resources",
        "Give amounts of 0 or more.",
    ),
    "a limit below nothing": ("submit", spec(run_limit_ms=-1), "iris.limits", "Omit the limit to have none."),
    "a comparison that is none": (
        "submit",
        spec(constraints=[pb.Constraint(key="a", op="~", values=["b"])]),
        "iris.constraint",
        "known: !=, <, <=, =, >, >=, absent, exists, in",
    ),
    "a comparison with nothing": (
        "submit",
        spec(constraints=[pb.Constraint(key="a", op="=")]),
        "iris.constraint",
        'Write "key", "!key", "key=value" or "key in a,b".',
    ),
    "a name that leads out": ("submit", spec(name="/zoe/../ann"), "iris.name", NAME),
    "a blob under a wrong hash": ("put_blob", put(HEX, b"other"), "iris.blob_hash", SHA),
    "a blob under a name of its own": ("put_blob", put("name", b"body"), "iris.digest", DIGITS),
    "a part that came too early": (
        "put_blob",
        put(ABSENT, b"late", 10, last=False),
        "iris.blob_part",
        "Send the blob again from 0.",
    ),
    "a part from before the beginning": (
        "put_blob",
        put(ABSENT, b"x", -1, last=False),
        "iris.blob_part",
        "Send the blob again from 0.",
    ),
    "a part that is too large": (
        "put_blob",
        put(ABSENT, bytes(5 * 2**20)),
        "rpc.too_large",
        "Send less, or in several calls.",
    ),
    "a blob that is not there": (
        "get_blob",
        pb.GetBlobRequest(digest=ABSENT),
        "iris.no_blob",
        "Check that its job is not past its retention.",
    ),
}


@pytest.mark.parametrize("case", RAW)
async def test_a_hand_made_call_is_refused_whole(world: Cluster, case: str):
    verb, request, code, hint = RAW[case]
    async with AsyncIrisClient.remote(world.url, user="zoe") as client:
        before = len(await client.jobs())
        error = await refusal(lambda: getattr(client.calls, verb)(request))
        assert (error.code, error.hint) == (code, hint)
        assert len(await client.jobs()) == before


# Bundles.


def archive(*entries: tuple[str, bytes, int]) -> bytes:
    """A zip file of names, contents and kinds of files."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, body, kind in entries:
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (kind | 0o644) << 16
            file.writestr(entry, body)
    return packed.getvalue()


def bomb() -> bytes:
    return archive(*((f"zeros-{number}", bytes(64 * 2**20), stat.S_IFREG) for number in range(5)))


def liar() -> bytes:
    """Says that it holds one byte."""
    body = bytearray(archive(("zeros", bytes(2**20), stat.S_IFREG)))
    central = body.rindex(b"PK\x01\x02")
    struct.pack_into("<I", body, central + 24, 1)
    return bytes(body)


BUNDLES: dict[str, tuple[Callable[[], bytes], str]] = {
    "zip-slip": (lambda: archive(("../../evil", b"x", stat.S_IFREG)), "leads out of the working directory"),
    "an absolute name": (
        lambda: archive(("/etc/evil", b"x", stat.S_IFREG)),
        "leads out of the working directory",
    ),
    "a link that leads out": (
        lambda: archive(("link", b"/etc/passwd", stat.S_IFLNK)),
        "neither a file nor a directory",
    ),
    "a file through a link": (
        lambda: archive(("link", b"/tmp", stat.S_IFLNK), ("link/evil", b"x", stat.S_IFREG)),
        "neither a file nor a directory",
    ),
    "a device": (lambda: archive(("null", b"", stat.S_IFCHR)), "neither a file nor a directory"),
    "a pipe": (lambda: archive(("pipe", b"", stat.S_IFIFO)), "neither a file nor a directory"),
    "a bomb": (bomb, "times its size, 200 times at most"),
    "an archive that lies about sizes": (liar, "it is damaged"),
    "no archive": (lambda: b"this is no zip", "it is damaged"),
}


@pytest.mark.parametrize("case", BUNDLES)
async def test_a_hostile_bundle_is_refused_by_the_worker(world: Cluster, case: str):
    make, words = BUNDLES[case]
    body = make()
    digest = hashlib.sha256(body).hexdigest()
    async with AsyncIrisClient.remote(world.url, user="zoe") as client:
        await client.put_blob(digest, body)
        request = spec(environment=pb.Environment(bundle=digest))
        job = await client.calls.submit(request)
        error = await refusal(lambda: client.wait(job.id, timeout=60))
        ended = (await client.get(job.id)).ending
    assert (error.code, error.hint) == ("iris.not_built", "See its output with: iris job logs /zoe/raw.")
    assert "The bundle is refused: " in error.sentence
    assert words in cast("pb.Ending", ended).message
