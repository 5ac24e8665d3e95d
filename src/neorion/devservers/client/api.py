"""The development servers of one namespace: asked for, changed and watched."""

from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from neorion.devservers.client.durations import parse_span, span_text
from neorion.devservers.client.events import event_time, is_about, is_after
from neorion.devservers.client.progress import obstacle
from neorion.devservers.client.server_diagnosis import Diagnosis, diagnose
from neorion.devservers.decide import SERVER_LABEL, STOPPED_BECAUSE, rank_name
from neorion.devservers.model import GROUP
from neorion.devservers.model.field_types import span
from neorion.devservers.model.kube_types import DEVSERVERFLAVORS, DEVSERVERS, DevServerFlavor, DevServerObject
from neorion.devservers.model.tenancy import user_of
from neorion.keel.base import (
    Conflict,
    Deadline,
    Duration,
    Id,
    Invalid,
    NotFound,
    QuotaExceeded,
    Retry,
    did_you_mean,
)
from neorion.keel.clock import Clock, SystemIds
from neorion.keel.kube import (
    Added,
    AlreadyExists,
    Bookmark,
    Deleted,
    MergePatch,
    Modified,
    ResourceExpired,
    Selector,
    UndecodableObject,
    UnknownKind,
)
from neorion.keel.kube.client import Client
from neorion.keel.kube.core import EVENT, POD, Event, Pod

if TYPE_CHECKING:
    from neorion.devservers.client.create_request import CreateRequest
    from neorion.devservers.client.extend import Extension

_UNBOUND = "unbound immediate PersistentVolumeClaims"
# Wait before a broken watch is opened again.
AGAIN = Duration.of(seconds=1)
# By what a server is known to be the one that a request made, whose answer was lost.
_ASKED = f"{GROUP}/request"
# After such a loss: a server that is just being restarted is back by then.
_LOOKS = tuple(Duration.of(ms=ms) for ms in (100, 300, 1_000, 3_000))
_IDS = SystemIds()
# Of a change that others overtook. Of those who try together one succeeds each time.
_TRIES = 50


class _Request(Id):
    """Id of one request for a new server."""

    prefix = "request"


class DevServerApi:
    """Every verb on servers that needs no look inside them."""

    def __init__(self, client: Client, namespace: str, clock: Clock, rank: int | None = None) -> None:
        self.client = client
        self.namespace = namespace
        self.clock = clock
        self._rank = rank

    def at_rank(self, rank: int | None) -> "DevServerApi":
        """The same servers, of which that rank alone is reached into. Without one, the first."""
        return DevServerApi(self.client, self.namespace, self.clock, rank)

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.clock.now().ns // 1_000_000_000, UTC)

    async def flavors(self) -> list[DevServerFlavor]:
        with map_errors(self.namespace):
            found = await self.client.list(DEVSERVERFLAVORS)
        return sorted(found.items, key=lambda one: one.meta.name)

    async def flavor(self, name: str = "") -> DevServerFlavor:
        """The flavor of that name; without one, the cluster's default."""
        known = {one.meta.name: one for one in await self.flavors()}
        if name in known:
            return known[name]
        if name:
            raise NotFound(
                "devservers.no_flavor",
                f'There is no flavor "{name}".',
                hint=did_you_mean(name, known) or "devctl flavors lists those there are.",
            )
        default = next((one for one in known.values() if one.spec.default), None)
        if default is None:
            raise NotFound(
                "devservers.no_default",
                "This cluster has no default flavor.",
                hint="Name one with --flavor; devctl flavors lists them.",
            )
        return default

    async def flavor_of(self, server: DevServerObject) -> DevServerFlavor | None:
        known = {one.meta.name: one for one in await self.flavors()}
        return known.get(server.spec.flavor)

    async def servers(self) -> list[DevServerObject]:
        with map_errors(self.namespace):
            found = await self.client.list(DEVSERVERS, self.namespace)
        return sorted(found.items, key=lambda one: one.meta.name)

    async def list_all(self) -> Sequence[DevServerObject]:
        """The servers of all namespaces, for who may see them."""
        with map_errors(self.namespace):
            return (await self.client.list(DEVSERVERS)).items

    async def server(self, name: str) -> DevServerObject:
        try:
            with map_errors(self.namespace):
                return await self.client.get(DEVSERVERS, name, self.namespace)
        except NotFound as error:
            if error.code != "kube.not_found":
                raise
        names = [one.meta.name for one in await self.servers()]
        raise NotFound(
            "devservers.no_server",
            f'There is no server "{name}" in {self.namespace}.',
            hint=did_you_mean(name, names) or f"Make it: devctl create {name}",
        )

    async def validate(
        self, request: "CreateRequest", flavor: DevServerFlavor | None = None
    ) -> dict[str, Any]:
        """The manifest of a request, after every check that needs no write. `flavor` is its flavor, if already read."""
        flavor = flavor or await self.flavor(request.flavor)
        limits = flavor.spec.limits
        if request.time:
            _check_time(flavor, parse_span(request.time))
        if limits is not None and limits.max_per_user is not None:
            taken = [one.meta.name for one in await self.servers() if one.spec.flavor == flavor.meta.name]
            if len(taken) >= limits.max_per_user:
                raise QuotaExceeded(
                    "devservers.too_many",
                    f"{flavor.meta.name} allows {limits.max_per_user} servers for each user.",
                    hint=f"Delete one you have: {', '.join(taken)}." if taken else "Take another flavor.",
                )
        return request.on(flavor.spec).manifest(self.namespace, flavor.meta.name)

    async def create(
        self, request: "CreateRequest", flavor: DevServerFlavor | None = None
    ) -> DevServerObject:
        """Validate a request, then create its server."""
        return await self.make(await self.validate(request, flavor))

    async def make(self, manifest: dict[str, Any]) -> DevServerObject:
        """Create a server from a manifest of `validate`. When the answer is lost, look for the server and try again."""
        name, mark = manifest["metadata"]["name"], str(_IDS.new(_Request))
        marked = {**manifest, "metadata": {**manifest["metadata"], "annotations": {_ASKED: mark}}}
        try:
            return await self._make(marked, mark)
        except Deadline as error:
            lost = error
        for wait in _LOOKS:
            await self.clock.sleep(wait)
            with suppress(Retry):
                return await self._made(name, mark) or await self._make(marked, mark)
        raise Deadline(
            "devservers.unsure",
            f"Whether {name} was made is not known. {lost.sentence}",
            hint=f"If it was, devctl describe {name} shows it and devctl delete {name} removes it.",
        ) from lost

    async def _make(self, marked: dict[str, Any], mark: str) -> DevServerObject:
        name = marked["metadata"]["name"]
        try:
            with map_errors(self.namespace):
                return await self.client.create(DEVSERVERS, marked)
        except AlreadyExists:
            if (made := await self._made(name, mark)) is not None:
                return made
            raise

    async def _made(self, name: str, mark: str) -> DevServerObject | None:
        """The server that a request with this mark has made; None where there is none of that name."""
        try:
            found = await self.client.get(DEVSERVERS, name, self.namespace)
        except NotFound:
            return None
        if found.meta.annotations.get(_ASKED) == mark:
            return found
        raise Conflict(
            "devservers.exists",
            f'There is a server "{name}" already.',
            hint=f"Enter it: devctl ssh {name}; or choose another name.",
        )

    async def delete(self, name: str) -> None:
        """The server goes; its home stays for its retention."""
        server = await self.server(name)
        await self.client.delete(DEVSERVERS, server.meta.name, self.namespace)

    async def start(self, name: str, by: timedelta | None = None) -> DevServerObject:
        """`by` is how long it runs from this and every later start, whatever end it had; without it, it keeps the end it has."""
        server = await self.server(name)
        spec: dict[str, Any] = {"running": True}
        if by is None:
            self._check_not_over(server)
        else:
            spec["lifecycle"] = await self._anew(server, by)
        return await self._turn(server, spec)

    async def stop(self, name: str) -> DevServerObject:
        return await self._turn(await self.server(name), {"running": False})

    async def extend(self, name: str, by: timedelta, *, shorten: bool = False) -> "Extension":
        from neorion.devservers.client.extend import extended  # noqa: PLC0415 -- few commands need it

        tries = 0
        while True:
            server = await self.server(name)
            found = extended(server, await self.flavor_of(server), by, self.now(), shorten=shorten)
            # Computed from the end that was read. If it has changed since, it is computed again.
            read = {"resourceVersion": server.meta.resource_version}
            try:
                await self._patch(server, {"metadata": read, "spec": {"lifecycle": found.lifecycle}})
            except Conflict:
                tries += 1
                if tries == _TRIES:
                    raise
            else:
                return found

    async def set_flavor(self, server: DevServerObject, flavor: str) -> DevServerObject:
        return await self._patch(server, {"spec": {"flavor": flavor}})

    async def pods(self, name: str) -> Sequence[Pod]:
        found = await self.client.list(POD, self.namespace, Selector(labels=f"{SERVER_LABEL}={name}"))
        return found.items

    async def pod(self, name: str) -> Pod:
        """The one to reach into: it runs, and is not on its way out."""
        server = await self.server(name)
        wanted = rank_pod_name(server, self._rank)
        standing = [
            pod
            for pod in await self.pods(name)
            if pod.meta.deleted is None and pod.status.phase == "Running" and wanted in (None, pod.meta.name)
        ]
        if not standing and wanted is not None and server.status.ready:
            sentence = f"Rank {self._rank or 0} of {name} does not run at the moment."
            raise Conflict(
                "devservers.not_running", sentence, hint=f"Look at its ranks: devctl describe {name}."
            )
        if not standing:
            found = diagnose(server)
            sentence = f"{name} has no machine at the moment." if found.well else found.sentence
            raise Conflict("devservers.not_running", sentence, hint=found.hint or f"devctl doctor {name}")
        return max(standing, key=lambda pod: (pod.meta.created or "", pod.meta.name))

    async def events(self, name: str) -> list[Event]:
        """Events of a server and of its objects, the oldest first."""
        found = await self.client.list(EVENT, self.namespace)
        about = [one for one in found.items if is_about(one, name)]
        return sorted(about, key=event_time)

    async def warning(self, server: DevServerObject) -> str:
        """The newest warning about a server since it was last started; "" when there is none."""
        since = server.status.running_since
        told = [
            one.note.rstrip(".")
            for one in await self.events(server.meta.name)
            if one.type == "Warning" and one.note and is_after(one, since)
        ]
        # The warning of a pod that waits for its volume has no reason. That of the volume's provisioner has one.
        better = [note for note in told if _UNBOUND not in note] or told
        return f"{better[-1]}." if better else ""

    async def diagnose(self, server: DevServerObject) -> Diagnosis:
        """Why it is as it is. Events are read only where the status alone does not say it."""
        found = diagnose(server)
        if found.well or not server.spec.running or obstacle(server):
            return found
        return diagnose(server, await self.warning(server))

    async def versions(self, name: str) -> AsyncGenerator[DevServerObject | None]:
        """A server as it is and as it changes; None while there is none. Never ends by itself."""
        while True:
            try:
                async with self.client.watch(
                    DEVSERVERS, self.namespace, Selector(fields=f"metadata.name={name}")
                ) as events:
                    there = False
                    async for event in events:
                        match event:
                            case Added(object=server) | Modified(object=server):
                                there = True
                                yield server
                            case Deleted():
                                yield None
                            case UndecodableObject(error=error):
                                raise error
                            case Bookmark(initial_done=True) if not there:
                                yield None
                            case _:
                                pass
            except (Retry, ResourceExpired):
                await self.clock.sleep(AGAIN)

    def _check_not_over(self, server: DevServerObject) -> None:
        name, lifecycle = server.meta.name, server.spec.lifecycle
        last = max(filter(None, (lifecycle.expiration_time, lifecycle.extended_until)), default=None)
        if lifecycle.expiration_time is not None and last is not None and last <= self.now():
            raise Conflict(
                "devservers.expired",
                f"{name} was to end at {last:%Y-%m-%d %H:%M %Z}, and would stop again at once.",
                hint=f"Give it more time: devctl start {name} --time 2h.",
            )

    async def _anew(self, server: DevServerObject, by: timedelta) -> dict[str, str | None]:
        """The fields of a lifecycle that begins now. A server that runs has begun, and is not shortened unawares."""
        name = server.meta.name
        if server.spec.running:
            raise Conflict(
                "devservers.started",
                f"{name} runs already.",
                hint=f"Give it more time: devctl extend {name} --time {span_text(by)}",
            )
        flavor = await self.flavor_of(server)
        if flavor is not None:
            _check_time(flavor, by)
        return {
            "timeToLive": span_text(by),
            "expirationTime": None,
            "extendedUntil": None,
            "keepUntil": None,
        }

    async def _turn(self, server: DevServerObject, spec: dict[str, Any]) -> DevServerObject:
        """Starts or stops the server. The record of an earlier automatic stop is removed."""
        return await self._patch(server, {"metadata": {"annotations": {STOPPED_BECAUSE: None}}, "spec": spec})

    async def _patch(self, server: DevServerObject, body: dict[str, Any]) -> DevServerObject:
        return await self.client.patch(DEVSERVERS, server.meta.name, MergePatch(body), self.namespace)


def rank_pod_name(server: DevServerObject, rank: int | None) -> str | None:
    """Pod of a rank of a distributed server; None for a server whose one Pod has any name."""
    name, distributed = server.meta.name, server.spec.distributed
    ranks = distributed.nodes if distributed is not None else 1
    if rank is not None and not 0 <= rank < ranks:
        raise Invalid(
            "devservers.rank",
            f"{name} has no rank {rank}.",
            hint=f"Its ranks are 0 to {ranks - 1}." if ranks > 1 else "Leave out --rank: it is one machine.",
        )
    return rank_name(name, rank or 0) if distributed is not None else None


def _check_time(flavor: DevServerFlavor, asked: timedelta) -> None:
    most = flavor.spec.limits.max_ttl if flavor.spec.limits else None
    if most is not None and asked > span(most):
        raise QuotaExceeded(
            "devservers.too_long",
            f"{flavor.meta.name} allows {most} at a time.",
            hint=f"Ask for --time {most} or less, and extend it later.",
        )


@contextmanager
def map_errors(namespace: str) -> Generator[None]:
    """Two things go wrong before the first server: nothing is installed, or the namespace is not there."""
    try:
        yield
    except UnknownKind:
        raise NotFound(
            "devservers.not_installed",
            "This cluster does not know development servers.",
            hint="Ask its administrator to run: devctl install.",
        ) from None
    except NotFound as error:
        if f'namespaces "{namespace}" not found' not in error.sentence:
            raise
        raise NotFound(
            "devservers.no_namespace",
            f'There is no namespace "{namespace}".',
            hint=f"Ask an administrator for it: devctl admin user add {user_of(namespace) or 'USER'};"
            " or name another one with --namespace.",
        ) from None
