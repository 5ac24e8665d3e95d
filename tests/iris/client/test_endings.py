"""What a task raises is raised where it is waited for, also what ends programs; and the client goes on."""

import signal
import sys
from collections.abc import Callable

import pytest

from neorion.iris.client import IrisClient, JobFailed
from neorion.iris.model import Cause
from neorion.iris.model.gen import iris_pb as pb

pytestmark = pytest.mark.timeout(240)


@pytest.mark.parametrize(
    ("end", "argument", "raised"),
    [(sys.exit, 7, SystemExit), (signal.raise_signal, signal.SIGINT, KeyboardInterrupt)],
    ids=["exit", "interrupt"],
)
def test_what_ends_programs_ends_no_client(
    client: IrisClient, end: Callable[[int], None], argument: int, raised: type[BaseException]
):
    with pytest.raises(raised):
        client.wait(client.submit(end, "ends", args=(argument,)), timeout=60)
    with pytest.raises(raised):
        client.map(end, [argument], "ends-map")
    assert client.wait(client.submit(abs, "goes-on", args=(-1,)), timeout=60) == 1


@pytest.mark.parametrize("cause", [cause for cause in Cause if cause is not Cause.DONE])
def test_every_end_is_one_sentence(cause: Cause):
    ending = pb.Ending(cause=cause, code=7, message='There is no program "x" on this worker.')
    sentence = JobFailed(pb.Job(name="/ada/job"), ending).sentence
    assert sentence.startswith("/ada/job ")
    assert sentence.endswith(".")
    assert not sentence.endswith("..")
    assert "_" not in sentence


def test_what_could_not_start_says_why():
    ending = pb.Ending(cause="not_built", code=127, message='There is no program "x" on this worker.')
    assert JobFailed(pb.Job(name="/ada/job"), ending).sentence == (
        '/ada/job could not be started: There is no program "x" on this worker.'
    )
