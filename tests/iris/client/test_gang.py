"""Gangs as torchrun and its like know them: the names of their variables, and a meeting point that works."""

import os
import socket
import threading

import pytest

from neorion.iris.client import IrisClient

pytestmark = pytest.mark.timeout(240)


def meet() -> tuple[int, int, list[str]]:
    """What `torch.distributed.init_process_group(init_method="env://")` does: the first listens, the others come."""
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    if rank == 0:
        heard = ["0"]
        with socket.create_server(place) as server:
            server.settimeout(30)
            while len(heard) < world:
                peer, _ = server.accept()
                with peer, peer.makefile("r") as words:
                    heard.append(words.readline().strip())
        return rank, world, sorted(heard)
    for _ in range(3_000):
        try:
            line = socket.create_connection(place, timeout=30)
        except ConnectionRefusedError:
            # It may be a moment ahead of the first one, as torch's own clients are.
            threading.Event().wait(0.01)
        else:
            with line:
                line.sendall(f"{rank}\n".encode())
            return rank, world, []
    raise TimeoutError("nobody listens")


def test_a_gang_of_two_meets_where_its_environment_says(client: IrisClient):
    found = client.wait(client.gang(meet, "rendezvous", replicas=2), timeout=90)
    assert found == [(0, 2, ["0", "1"]), (1, 2, [])]


# What torch's elastic launcher reads for its flags (PET_<FLAG>), and what it gives its processes.
TORCHRUN = {"PET_NNODES", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"}
PROCESS = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}


def test_torchrun_finds_its_flags_and_a_bare_process_its_rank(client: IrisClient):
    def told() -> dict[str, str]:
        return dict(os.environ)

    first, second = client.wait(client.gang(told, "flags", replicas=2, ports=["metrics"]), timeout=90)
    for number, found in enumerate((first, second)):
        assert set(found) >= TORCHRUN | PROCESS
        assert (found["PET_NODE_RANK"], found["RANK"], found["LOCAL_RANK"]) == (str(number), str(number), "0")
        assert (found["PET_NNODES"], found["WORLD_SIZE"], found["IRIS_NUM_TASKS"]) == ("2", "2", "2")
        assert found["IRIS_PORT_METRICS"].isdecimal()
        assert int(found["MASTER_PORT"]) not in (0, int(found["IRIS_PORT_METRICS"]))
    for name in ("MASTER_ADDR", "MASTER_PORT", "PET_MASTER_ADDR", "PET_MASTER_PORT"):
        assert first[name] == second[name]


def test_every_task_of_a_gang_has_the_arguments(client: IrisClient):
    def scaled(number: int, *, factor: int) -> int:
        return number * factor + int(os.environ["RANK"])

    job = client.gang(scaled, "scaled", replicas=2, args=(20,), kwargs={"factor": 2})
    assert client.wait(job, timeout=90) == [40, 41]
