"""`python -m iris.cluster.controller.main serve --host --port --config --bundle-prefix`."""

from iris.entry import run_group

if __name__ == "__main__":
    run_group("controller")
