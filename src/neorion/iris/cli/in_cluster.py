"""What `iris cluster up`, `down`, `tunnel` and `logs` do."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio

from neorion.iris.adapters.cluster_file import ClusterFile, check_served
from neorion.iris.adapters.installation import Installer, manifests, names_of, token_path
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
PATIENCE: Final = Duration.of(minutes=45)


@dataclass(frozen=True, slots=True)
class Place:
    """An installation: its cluster file, its objects, and the cluster they belong to."""

    file: ClusterFile
    manifests: list[dict[str, Any]]
    names: Names
    cluster: Callable[[], ClusterConfig]

    @classmethod
    def of(cls, out: Output, config: Path, kubeconfig: Path | None, context: str) -> "Place":
        file = load(config, ClusterFile, out.env)
        return cls(
            file,
            manifests(file, config.read_text()),
            names_of(file),
            lambda: find_cluster(kubeconfig, context, out.env),
        )

    def installer(self, client: Client) -> Installer:
        return Installer(client, SystemClock(), self.manifests, self.names)


def show(out: Output, place: Place) -> None:
    """Prints the objects as kubectl takes them."""
    check_served(place.file)
    out.text("---\n".join(as_yaml(manifest) for manifest in place.manifests))


def up(out: Output, place: Place, *, wait: bool) -> None:
    check_served(place.file)

    async def install(client: Client) -> None:
        installer = place.installer(client)
        async for name in installer.apply():
            out.say(f"{name} applied")
        if not wait:
            return
        last = ""
        with (
            progress(out, "controller", SystemClock()) as told,
            anyio.move_on_after(PATIENCE.seconds) as time,
        ):
            async for why in installer.wait():
                last = why
                told.advance(note=why)
        if time.cancelled_caught:
            raise Terminal(
                "iris.controller_not_ready",
                f"The controller did not answer within {PATIENCE}: {last}",
                hint="See more: iris cluster logs, kubectl describe pods.",
            )
        out.say("The controller answers. Reach it with: iris cluster tunnel --config FILE")

    _ask(place, install)


def down(out: Output, place: Place, *, purge: bool) -> None:
    async def remove(client: Client) -> None:
        async for name in place.installer(client).remove(purge=purge):
            out.say(f"{name} deleted")

    _ask(place, remove)


def tunnel(out: Output, place: Place, port: int) -> None:
    async def hold(crew: Supervisor) -> None:
        async with connect(place.cluster(), _AGENT) as client:
            await serve(client, crew)

    async def serve(client: Client, crew: Supervisor) -> None:
        pod = await place.installer(client).controller()
        service = place.file.controller.service
        target = PodPort(pod.meta.name, place.names.namespace, service.port if service is not None else 10000)
        container = ContainerRef(pod.meta.name, place.names.namespace)
        token = await run_in(client, container, ["cat", token_path(place.file)])
        if token.code:
            raise Terminal(
                "iris.no_admin_token", "The administrator's token could not be read from the controller."
            )
        async with forward(client, target, port=port) as here:
            left = Path(token_file(out.env, here))
            _write(left, token.stdout)
            try:
                out.text(f"http://localhost:{here}\n")
                await crew.stopping.wait()
            finally:
                left.unlink(missing_ok=True)

    # Ends with SIGTERM, too, and takes the token along.
    run_process(hold)


def logs(out: Output, place: Place, *, follow: bool, tail: int | None) -> None:
    async def show_logs(client: Client) -> None:
        pod = await place.installer(client).controller()
        request = PodLogOptions(follow=follow, tail_lines=tail)
        async with client.logs(pod.meta.name, place.names.namespace, request) as pieces:
            async for piece in pieces:
                out.text(piece.decode(errors="replace"))

    _ask(place, show_logs)


def _write(path: Path, token: bytes) -> None:
    """Readable by its user alone, from the first moment."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(token)


def _ask(place: Place, question: Callable[[Client], Awaitable[None]]) -> None:
    async def converse() -> None:
        async with connect(place.cluster(), _AGENT) as client:
            await question(client)

    try:
        anyio.run(converse)
    except BaseExceptionGroup as group:
        raise only_error(group) from None
