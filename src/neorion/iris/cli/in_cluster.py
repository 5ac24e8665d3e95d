"""Operations of `iris cluster up`, `down`, `tunnel` and `logs`."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio

from neorion.iris.adapters.cluster_file import ClusterFile, check_served
from neorion.iris.adapters.installation import Installer, manifests, names_of, rehearse, token_path
from neorion.iris.adapters.platforms.kubernetes.names import Names
from neorion.iris.model.tokens import token_file
from neorion.keel.base import Duration, Terminal
from neorion.keel.cli.kit import Output
from neorion.keel.cli.kit.progress import progress
from neorion.keel.cli.kit.serialize import as_yaml
from neorion.keel.clock import SystemClock
from neorion.keel.config import load
from neorion.keel.kube import PodLogOptions
from neorion.keel.kube.client import Client, ClusterConfig, connect, find_cluster
from neorion.keel.kube.streams import ContainerRef, PodPort, forward
from neorion.keel.kube.streams import run as run_in
from neorion.keel.run import Supervisor, only_error, run_process

_AGENT: Final = "iris-cluster"
# A bare-metal machine boots in half an hour.
READY_TIMEOUT: Final = Duration.of(minutes=45)


@dataclass(frozen=True, slots=True)
class Installation:
    """An installation: its cluster file, its objects, and its Kubernetes cluster."""

    file: ClusterFile
    manifests: list[dict[str, Any]]
    names: Names
    cluster: Callable[[], ClusterConfig]

    @classmethod
    def of(cls, out: Output, config: Path, kubeconfig: Path | None, context: str) -> "Installation":
        # The controller resolves its secrets itself, from the Secret with its variables.
        file = load(config, ClusterFile, out.env, with_secrets=False)
        return cls(
            file,
            manifests(file, config.read_text()),
            names_of(file),
            lambda: find_cluster(kubeconfig, context, out.env),
        )

    def installer(self, client: Client) -> Installer:
        return Installer(client, SystemClock(), self.manifests, self.names)


def show(out: Output, installation: Installation) -> None:
    """Prints the objects as YAML for kubectl."""
    check_served(installation.file)
    out.text("---\n".join(as_yaml(manifest) for manifest in installation.manifests))


def up(out: Output, installation: Installation, *, wait: bool) -> None:
    check_served(installation.file)

    async def install(client: Client) -> None:
        await rehearse(client, installation.manifests)
        installer = installation.installer(client)
        async for name in installer.apply():
            out.say(f"{name} applied")
        if not wait:
            return
        last = ""
        with (
            progress(out, "controller", SystemClock()) as bar,
            anyio.move_on_after(READY_TIMEOUT.seconds) as time,
        ):
            async for why in installer.wait():
                last = why
                bar.advance(note=why)
        if time.cancelled_caught:
            raise Terminal(
                "iris.controller_not_ready",
                f"The controller did not answer within {READY_TIMEOUT}: {last}",
                hint="See the cause with: iris cluster logs, kubectl describe pods.",
            )
        out.say("The controller is ready. Connect with: iris cluster tunnel --config FILE")

    _run(installation, install)


def down(out: Output, installation: Installation, *, purge: bool) -> None:
    async def remove(client: Client) -> None:
        async for name in installation.installer(client).remove(purge=purge):
            out.say(f"{name} deleted")

    _run(installation, remove)


def tunnel(out: Output, installation: Installation, port: int) -> None:
    async def run_tunnel(crew: Supervisor) -> None:
        async with connect(installation.cluster(), _AGENT) as client:
            await serve(client, crew)

    async def serve(client: Client, crew: Supervisor) -> None:
        pod = await installation.installer(client).controller()
        service = installation.file.controller.service
        target = PodPort(
            pod.meta.name, installation.names.namespace, service.port if service is not None else 10000
        )
        container = ContainerRef(pod.meta.name, installation.names.namespace)
        token = await run_in(client, container, ["cat", token_path(installation.file)])
        if token.code:
            raise Terminal(
                "iris.no_admin_token",
                "The administrator's token could not be read from the controller.",
                hint="Read the log of the controller: iris cluster logs.",
            )
        async with forward(client, target, port=port) as here:
            path = Path(token_file(out.env, here))
            _write(path, token.stdout)
            try:
                out.text(f"http://localhost:{here}\n")
                await crew.stopping.wait()
            finally:
                path.unlink(missing_ok=True)

    # Also ends on SIGTERM, and then deletes the token.
    run_process(run_tunnel)


def logs(out: Output, installation: Installation, *, follow: bool, tail: int | None) -> None:
    async def show_logs(client: Client) -> None:
        pod = await installation.installer(client).controller()
        request = PodLogOptions(follow=follow, tail_lines=tail)
        async with client.logs(pod.meta.name, installation.names.namespace, request) as chunks:
            async for chunk in chunks:
                out.text(chunk.decode(errors="replace"))

    _run(installation, show_logs)


def _write(path: Path, token: bytes) -> None:
    """Writes the token to a file that only its user can read."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(token)


def _run(installation: Installation, action: Callable[[Client], Awaitable[None]]) -> None:
    async def with_client() -> None:
        async with connect(installation.cluster(), _AGENT) as client:
            await action(client)

    try:
        anyio.run(with_client)
    except BaseExceptionGroup as group:
        raise only_error(group) from None
