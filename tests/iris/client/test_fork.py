"""Processes that were forked from one that has used a client."""

import subprocess
import sys

import pytest

from tests.iris.processes import Cluster

# In a program of its own: a fork of the test's process would take the tests' own threads and files along.
_PARENT = """
import multiprocessing, os, sys
from iris.client import IrisClient

URL, HOW = sys.argv[1:]

def double(number):
    with IrisClient.remote(URL) as client:
        return client.wait(client.submit(lambda: number * 2, f"fork-{HOW}-{os.getpid()}-{number}"), timeout=60)

def with_pool():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(double, range(4))

def with_fork():
    values = []
    for number in range(4):
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.write(writing, str(double(number)).encode())
            os._exit(0)
        os.close(writing)
        with open(reading) as answer:
            values.append(int(answer.read()))
        os.wait()
    return values

client = IrisClient.remote(URL)
assert client.wait(client.submit(lambda: "parent", f"parent-{HOW}"), timeout=60) == "parent"
if HOW.startswith("closed"):
    client.close()
values = with_pool() if HOW.endswith("pool") else with_fork()
assert values == [0, 2, 4, 6], values
if not HOW.startswith("closed"):
    # The children have not disturbed it.
    assert client.wait(client.submit(lambda: "again", f"again-{HOW}"), timeout=60) == "again"
    client.close()
"""


@pytest.mark.parametrize("how", ["open-pool", "open-fork", "closed-pool", "closed-fork"])
def test_a_new_client_in_a_forked_child_works(cluster: Cluster, how: str):
    command = [sys.executable, "-W", "error", "-c", _PARENT, cluster.url, how]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=80, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
