"""Adds numbers over a gang: tasks that start together and meet at rank 0, as torchrun's processes do."""

import os
import socket
import time

from iris.client import IrisClient


def all_reduce(numbers: list[int]) -> int:
    """Sends this task's number to rank 0, and returns the sum of all numbers."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    if rank:
        with connect(address) as to_first:
            to_first.sendall(str(numbers[rank]).encode())
            return int(to_first.recv(64))
    with socket.create_server(address) as listener:
        others = [listener.accept()[0] for _ in range(size - 1)]
        total = numbers[0] + sum(int(other.recv(64)) for other in others)
        for other in others:
            other.sendall(str(total).encode())
        return total


def connect(address: tuple[str, int]) -> socket.socket:
    """Tasks of a gang start together, but rank 0 may need a moment longer."""
    for _ in range(100):
        try:
            return socket.create_connection(address)
        except ConnectionRefusedError:
            time.sleep(0.1)
    raise TimeoutError(f"rank 0 does not listen on {address}")


with IrisClient.local() as client:
    job = client.gang(all_reduce, "all-reduce", replicas=2, args=([20, 22],))
    print("each task has:", client.wait(job, timeout=60))
