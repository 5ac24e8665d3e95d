"""What a cluster file says is done, or refused by name."""

from pathlib import Path

import pytest

from neorion.iris.adapters.cluster_file import (
    ClusterFile,
    check_served,
    container_flags,
    kubernetes_settings,
)
from neorion.iris.adapters.runtimes.container.settings import HostMount
from neorion.iris.app.cluster import local_file
from neorion.keel.base import Invalid
from neorion.keel.config import load, loads

FILES = Path(__file__).parent.parent / "cluster_files"
GROUP = """
controller: { local: {} }
scale_groups:
  g:
    accelerator_type: cpu
    resources: { cpu: 1, ram: 1GB }
    max_slices: 1
    slice_template: { local: {} }
"""


def test_the_local_cluster_asks_for_nothing_that_is_not_served():
    check_served(local_file(2))


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("platform.label_prefix", "platform: { local: {}, label_prefix: mine }"),
        (
            "defaults.bootstrap.runtime: kubernetes needs worker Pods",
            "platform: { local: {} }\ndefaults: { bootstrap: { runtime: kubernetes } }",
        ),
        (
            "defaults.bootstrap.runtime: docker needs defaults.bootstrap.task_image",
            "platform: { local: {} }\ndefaults: { bootstrap: { runtime: docker } }",
        ),
        (
            "defaults.bootstrap.task_mounts is for runtime: containerd and runtime: docker",
            'platform: { local: {} }\ndefaults: { bootstrap: { task_mounts: ["/a:/b"] } }',
        ),
        (
            "defaults.bootstrap.runtime_socket is for",
            "platform: { local: {} }\ndefaults: { bootstrap: { runtime_socket: /x } }",
        ),
        (
            "defaults.bootstrap.cache_dir",
            "platform: { local: {} }\ndefaults: { bootstrap: { cache_dir: /x } }",
        ),
        (
            "defaults.bootstrap.task_image",
            "platform: { local: {} }\ndefaults: { bootstrap: { task_image: x } }",
        ),
    ],
)
def test_what_is_not_served_is_refused_by_name(key: str, text: str):
    with pytest.raises(Invalid, match=key):
        check_served(loads(f"{text}{GROUP}", ClusterFile, {}))


def test_what_is_served_is_not_refused():
    text = """
platform: { local: { stop_grace: 1s } }
defaults: { bootstrap: { docker_image: "worker:1", worker_port: 10002, env_vars: { A: b } } }
storage: { database: "postgresql://x", bundle_prefix: /var/blobs }
limits: { cpu: 8, memory: 8Gi, gpus: 1, running_tasks: 3 }
retention: { jobs: 1h }
"""
    check_served(loads(f"{text}{GROUP}", ClusterFile, {}))


@pytest.mark.parametrize("runtime", ["containerd", "docker"])
def test_workers_of_this_machine_are_told_how_containers_are_made(runtime: str):
    chosen = f"runtime: {runtime}, task_image: task:1, task_mounts: ['/a:/b:ro'], runtime_socket: /engine"
    text = f"platform: {{ local: {{}} }}\ndefaults: {{ bootstrap: {{ {chosen} }} }}"
    file = loads(f"{text}{GROUP}", ClusterFile, {})
    check_served(file)
    assert container_flags(file, "g") == (
        f"--runtime={runtime}",
        "--task-image=task:1",
        "--task-mount=/a:/b:ro",
        "--runtime-socket=/engine",
    )


@pytest.mark.parametrize("mount", ["/a", "a:/b", "/a:b", "/a:/b:rx"])
def test_a_mount_names_two_absolute_paths(mount: str):
    text = f"platform: {{ local: {{}} }}\ndefaults: {{ bootstrap: {{ task_mounts: ['{mount}'] }} }}"
    with pytest.raises(Invalid, match="task_mounts"):
        loads(f"{text}{GROUP}", ClusterFile, {})
    with pytest.raises(Invalid, match="is not a valid mount"):
        HostMount.parse(mount)


@pytest.mark.parametrize("name", ["coreweave", "coreweave-test", "kubernetes"])
def test_files_for_worker_pods_are_served(name: str):
    check_served(load(FILES / f"{name}.yaml", ClusterFile, {}))


@pytest.mark.parametrize(
    ("before", "after", "key"),
    [
        ("worker_port: 10001", "runtime: containerd", "runtime: containerd cannot run in worker Pods"),
        ("worker_port: 10001", "runtime: docker", "runtime: docker cannot run in worker Pods"),
        ("worker_port: 10001", 'task_mounts: ["/a:/b"]', "task_mounts is not supported"),
        ("worker_port: 10001", "task_image: task:1", "task_image without runtime: kubernetes"),
        (
            "max_slices: 10",
            "max_slices: 10\n    runtime: containerd",
            r"scale_groups.\w+.runtime: containerd",
        ),
        ("worker_port: 10001", "cache_dir: /mnt/local", "cache_dir"),
    ],
)
def test_what_worker_pods_cannot_do_yet_is_refused_by_name(before: str, after: str, key: str):
    text = (FILES / "coreweave.yaml").read_text().replace(before, after)
    with pytest.raises(Invalid, match=key):
        check_served(loads(text, ClusterFile, {}))


def test_a_scale_group_chooses_pods_for_its_tasks():
    text = (FILES / "kubernetes.yaml").read_text()
    file = loads(text.replace("max_slices: 4", "max_slices: 4\n    runtime: kubernetes"), ClusterFile, {})
    check_served(file)
    assert [group.task_pods for group in kubernetes_settings(file).groups.values()] == [True, False]
