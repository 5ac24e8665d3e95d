"""Runs one function as a job, and returns its value or its exception."""

from iris.client import IrisClient


def divide(a: int, b: int) -> float:
    return a / b


with IrisClient.local() as client:
    job = client.submit(divide, "divide", args=(84, 2))
    print("84 / 2 =", client.wait(job, timeout=60))

    job = client.submit(divide, "divide-by-zero", args=(84, 0))
    try:
        client.wait(job, timeout=60)
    except ZeroDivisionError as error:
        print("84 / 0 failed:", error)
