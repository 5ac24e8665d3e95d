"""What a worker's command line says of its runtime."""

from pathlib import Path, PurePosixPath

import pytest

from neorion.iris.adapters.cluster_file import RuntimeName
from neorion.iris.adapters.runtimes.container.settings import HostMount
from neorion.iris.app.runtime import ContainerOptions, RuntimeChoice, task_containers
from neorion.keel.base import Invalid

FOLDER = Path("/var/cache/iris")


def options(runtime: str, image: str = "", socket: str = "", *mounts: str) -> ContainerOptions:
    return {
        "runtime": runtime,
        "task_image": image,
        "runtime_socket": Path(socket) if socket else None,
        "task_mounts": mounts,
    }


@pytest.mark.parametrize(
    ("runtime", "socket"),
    [("containerd", "/run/containerd/containerd.sock"), ("docker", "/var/run/docker.sock")],
)
def test_containers_have_the_usual_socket_of_their_engine(runtime: str, socket: str):
    settings = task_containers(options(runtime, "task:1"), FOLDER, {})
    assert settings is not None
    assert (settings.engine, settings.socket, settings.image) == (runtime, Path(socket), "task:1")
    assert settings.folder == FOLDER / "containers"


def test_the_command_line_names_socket_and_mounts_and_the_platform_the_machine():
    given = options("docker", "task:1", "/engine", "/mnt/data:/data:ro", "/scratch:/scratch")
    settings = task_containers(given, FOLDER, {"IRIS_MACHINE": "/slices/a/0"})
    assert settings is not None
    assert (settings.socket, settings.machine) == (Path("/engine"), "/slices/a/0")
    assert settings.mounts == (
        HostMount(Path("/mnt/data"), PurePosixPath("/data"), read_only=True),
        HostMount(Path("/scratch"), PurePosixPath("/scratch")),
    )


@pytest.mark.parametrize("runtime", ["process", "kubernetes"])
def test_other_runtimes_have_no_containers_of_the_machine(runtime: str):
    assert task_containers(options(runtime), FOLDER, {}) is None


@pytest.mark.parametrize("runtime", ["containerd", "docker"])
def test_containers_need_an_image(runtime: str):
    choice = RuntimeChoice(
        RuntimeName(runtime), "host", containers=task_containers(options(runtime), FOLDER, {})
    )
    with pytest.raises(Invalid, match=f"The runtime {runtime} needs an image"):
        choice.check()
