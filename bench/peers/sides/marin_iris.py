import itertools
import os
import tempfile
import time

# Its state goes where nothing else is, and a build of June refuses to be used later in the year.
os.environ["HOME"] = tempfile.mkdtemp(prefix="marin-iris-")
from iris import _build_info

_build_info.BUILD_DATE = time.strftime("%Y-%m-%d")

from iris.client.client import LocalClientConfig
from iris.client.local_client import local_client
from iris.cluster.types import Entrypoint, ResourceSpec
from side import serve


def nothing():
    return None


def main():
    small = ResourceSpec(cpu=0.05, memory="16m")
    numbers = itertools.count()
    with local_client(LocalClientConfig(max_workers=4)) as client:

        def submit(entry, replicas=1):
            return client.submit(entry, f"job-{next(numbers)}", small, replicas=replicas)

        def wait(job):
            job.wait(timeout=600, poll_interval=0.02)

        def one(count):
            for _ in range(count):
                wait(submit(Entrypoint.from_callable(nothing)))

        def tasks(count):
            wait(submit(Entrypoint.from_callable(nothing), count))

        def commands(count):
            wait(submit(Entrypoint.from_command("true"), count))

        def jobs(count):
            for job in [submit(Entrypoint.from_callable(nothing)) for _ in range(count)]:
                wait(job)

        one(1)
        serve({"one": one, "tasks": tasks, "commands": commands, "jobs": jobs})


if __name__ == "__main__":
    main()
