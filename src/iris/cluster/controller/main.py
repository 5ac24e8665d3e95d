"""`python -m iris.cluster.controller.main serve --host --port --config --bundle-prefix`."""

from iris.entry import enter

if __name__ == "__main__":
    enter("controller")
