"""`python -m iris.cluster.worker.main serve --config --runtime`."""

from iris.entry import enter

if __name__ == "__main__":
    enter("worker")
