"""The work of `neorion drydock kubeconfig` and `kubectl`."""

import subprocess

from neorion.drydock.clusters import ClusterManager
from neorion.keel.cli.kit import Output


def kubeconfig_command(out: Output, name: str) -> None:
    out.text(f"{ClusterManager.of(out.env).find(name).kubeconfig}\n")


def kubectl_command(out: Output, args: tuple[str, ...], name: str) -> int:
    cluster = ClusterManager.of(out.env).find(name)
    env = cluster.kubectl_env(out.env)
    return subprocess.run([str(cluster.shelf.path("kubectl")), *args], env=env, check=False).returncode  # noqa: S603 -- that is the command
