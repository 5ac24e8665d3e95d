"""From a Dockerfile or an archive to a running pod, without a registry in the outside world."""

from pathlib import Path

import pytest

from neorion.drydock.cluster import Cluster
from neorion.drydock.images import BuildRequest, ImageName, ImageStore, Registry, build, load
from neorion.keel.base import Invalid, NotFound, Terminal
from tests.node.pods import MINUTES, NEEDS, Kubectl, pod

pytestmark = [pytest.mark.anyio, NEEDS, MINUTES]


async def test_an_image_is_built_and_run(node_cluster: Cluster, kubectl: Kubectl, tmp_path: Path):
    (tmp_path / "greeting").write_text("built here")
    (tmp_path / "Dockerfile").write_text(
        "ARG BASE=busybox\nFROM ${BASE} AS first\nRUN echo ready > /ready\n"
        "FROM busybox\nCOPY --from=first /ready /ready\nCOPY greeting /greeting\n"
    )
    store = ImageStore.of(node_cluster.shelf)
    name = await build(
        store, BuildRequest(tmp_path, ImageName.parse(f"ghcr.io/team/{kubectl.namespace}:dev"))
    )
    await store.push(name, Registry.of(node_cluster.layout).address)
    script = "cat /greeting /ready; exec sleep 100000"
    await kubectl.run(pod("built", script, container={"image": name}))
    assert await kubectl("logs", "built") == "built hereready\n"


async def test_an_archive_is_loaded_under_its_own_name(node_cluster: Cluster, tmp_path: Path):
    store = ImageStore.of(node_cluster.shelf)
    archive = tmp_path / "image.tar"
    await store.buildah(
        "push", "--quiet", "docker.io/library/busybox:latest", f"oci-archive:{archive}:carried:1"
    )
    assert await load(store, archive) == ["docker.io/library/carried:1"]
    assert await store.has("docker.io/library/carried:1")
    archive.write_text("no archive")
    with pytest.raises(Invalid, match="not an archive of an image"):
        await load(store, archive)


async def test_a_base_that_nothing_stands_in_for_is_refused(node_cluster: Cluster, tmp_path: Path):
    (tmp_path / "Dockerfile").write_text("FROM pyton:3.11-slim\n")
    store = ImageStore.of(node_cluster.shelf)
    with pytest.raises(NotFound) as refused:
        await build(store, BuildRequest(tmp_path, ImageName.parse("x")))
    assert 'did you mean "docker.io/library/python:3.11-slim"?' in refused.value.hint


async def test_the_machines_settings_are_there_while_building_and_not_in_the_image(
    node_cluster: Cluster, tmp_path: Path
):
    store = ImageStore.of(node_cluster.shelf)
    (tmp_path / "Dockerfile").write_text("FROM busybox\nRUN test -s /etc/ssl/certs/ca-certificates.crt\n")
    name = await build(store, BuildRequest(tmp_path, ImageName.parse("trusting")))
    (tmp_path / "Dockerfile").write_text(
        f"FROM {name}\nCOPY --from={name} /etc/ssl/certs/ca-certificates.crt /found\nRUN test -s /found\n"
    )
    with pytest.raises(Terminal):
        await build(store, BuildRequest(tmp_path, ImageName.parse("leaking")))
