"""Containers of a Docker engine, over its Engine API: a container for each attempt, on the machine's network.

It imports no SDK: a dozen calls over a Unix socket are all it needs.
"""

from neorion.iris.adapters.runtimes.docker.docker_api import DockerApi
from neorion.iris.adapters.runtimes.docker.engine import DockerEngine

__all__ = ["DockerApi", "DockerEngine"]
