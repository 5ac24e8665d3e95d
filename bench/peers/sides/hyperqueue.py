import sys

# This script has the library's name.
sys.path.append(sys.path.pop(0))
import os
import tempfile

from hyperqueue import Job
from hyperqueue.cluster import LocalCluster, WorkerConfig
from hyperqueue.task.function import PythonEnv
from side import serve


def nothing():
    return None


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with LocalCluster(worker_config=WorkerConfig(cores=8)) as cluster:
            client = cluster.client(python_env=PythonEnv(python_bin=sys.executable))

            def run(job):
                client.wait_for_jobs([client.submit(job)])

            def tasks(count):
                job = Job()
                for _ in range(count):
                    job.function(nothing)
                run(job)

            def commands(count):
                job = Job()
                for _ in range(count):
                    job.program(["true"])
                run(job)

            def one(count):
                for _ in range(count):
                    tasks(1)

            commands(10)
            serve({"one": one, "tasks": tasks, "commands": commands})


if __name__ == "__main__":
    main()
