"""`python -m iris.cluster.worker.main serve --config --runtime`."""

from iris.entry import run_group

if __name__ == "__main__":
    run_group("worker")
