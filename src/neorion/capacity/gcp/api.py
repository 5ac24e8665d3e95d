"""Calls to Compute Engine: in threads, with timeouts, and with errors of the port."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

import anyio.to_thread
import google.auth
import msgspec
from google.api_core.client_options import ClientOptions
from google.cloud import compute_v1 as compute

from neorion.capacity.gcp.api_types import GcpInstance, GcpRegion, Operation, ZoneInstances, tail
from neorion.capacity.gcp.errors import FAILURES, is_status, refusal
from neorion.capacity.provider import unknown_outcome

T = TypeVar("T")

# Calls answer within seconds; longer work becomes an operation that is polled.
_TIMEOUT_S: Final = 30.0
# The most that one page may hold.
_PAGE: Final = 500
_SCOPES: Final = ["https://www.googleapis.com/auth/compute"]


@dataclass(frozen=True, slots=True)
class _Clients:
    """The vendor's clients. Their messages are only partly typed, so they are converted to `api_types`."""

    instances: Any
    operations: Any
    regions: Any


class GcpApi:
    """One project. `endpoint` is the API's address, if not the usual one."""

    def __init__(self, name: str, project: str, endpoint: str = "") -> None:
        self._name = name
        self._project = project
        self._endpoint = endpoint
        self._clients: _Clients | None = None
        # Guards the creation of clients, which happens in threads.
        self._making = threading.Lock()

    async def insert(self, zone: str, instance: dict[str, Any], key: str, template: str) -> Operation | None:
        """Inserts an instance; None if the name exists. Google recognises a repeated request by `key`."""
        request = {
            "project": self._project,
            "zone": zone,
            "instance_resource": instance,
            "request_id": key,
            "source_instance_template": self._template(template),
        }
        return await self._call(
            Operation, zone, lambda to: to.instances.insert_unary(request, **_ONCE), absent=409
        )

    async def operation(self, zone: str, name: str) -> Operation:
        request = {"project": self._project, "zone": zone, "operation": name}
        return await self._read_call(Operation, zone, lambda to: to.operations.get(request, **_ONCE))

    async def instance(self, zone: str, name: str) -> GcpInstance | None:
        request = self._which(zone, name)
        return await self._call(GcpInstance, zone, lambda to: to.instances.get(request, **_ONCE))

    async def delete(self, zone: str, name: str) -> bool:
        """Deletes an instance; false if it does not exist."""
        request = self._which(zone, name)
        begun = await self._call(Operation, zone, lambda to: to.instances.delete_unary(request, **_ONCE))
        return begun is not None

    async def reset(self, zone: str, name: str) -> bool:
        """Resets an instance; false if it does not exist."""
        request = self._which(zone, name)
        begun = await self._call(Operation, zone, lambda to: to.instances.reset_unary(request, **_ONCE))
        return begun is not None

    async def labelled(self, key: str, value: str) -> list[GcpInstance]:
        """Returns all instances of the project with this label, in all zones."""
        request = {"project": self._project, "filter": f'labels.{key}="{value}"', "max_results": _PAGE}
        found: list[GcpInstance] = []
        scopes = await self._thread(
            "its project",
            lambda to: [
                (str(zone), _read(ZoneInstances, scope))
                for zone, scope in to.instances.aggregated_list(request, **_ONCE)
            ],
        )
        for zone, scope in scopes:
            if scope.warning.code == "UNREACHABLE":
                # A zone that did not answer must not look like one without machines.
                raise unknown_outcome(self._name, f"{zone} could not be listed")
            found += scope.instances
        return found

    async def zones(self, region: str) -> list[str]:
        request = {"project": self._project, "region": region}
        found = await self._read_call(GcpRegion, region, lambda to: to.regions.get(request, **_ONCE))
        return sorted(tail(zone) for zone in found.zones)

    def _which(self, zone: str, name: str) -> dict[str, str]:
        return {"project": self._project, "zone": zone, "instance": name}

    def _template(self, name: str) -> str:
        if not name or "/" in name:
            return name
        return f"projects/{self._project}/global/instanceTemplates/{name}"

    async def _read_call(self, kind: type[T], scope: str, work: Callable[[_Clients], object]) -> T:
        return await self._thread(scope, lambda to: _read(kind, work(to)))

    async def _call(
        self, kind: type[T], scope: str, work: Callable[[_Clients], object], absent: int = 404
    ) -> T | None:
        """Runs a call; None if Google returns the status `absent`."""

        def attempt(to: _Clients) -> T | None:
            try:
                return _read(kind, work(to))
            except FAILURES as error:
                if is_status(error, absent):
                    return None
                raise

        return await self._thread(scope, attempt)

    async def _thread(self, scope: str, work: Callable[[_Clients], T]) -> T:
        try:
            return await anyio.to_thread.run_sync(lambda: work(self._reach()), abandon_on_cancel=True)
        except FAILURES as error:
            raise refusal(self._name, scope, error) from None

    def _reach(self) -> _Clients:
        with self._making:
            if self._clients is None:
                credentials, _ = cast("Any", google.auth).default(scopes=_SCOPES)
                options = ClientOptions(api_endpoint=self._endpoint or None)
                self._clients = _Clients(
                    compute.InstancesClient(credentials=credentials, client_options=options),
                    compute.ZoneOperationsClient(credentials=credentials, client_options=options),
                    compute.RegionsClient(credentials=credentials, client_options=options),
                )
            return self._clients


# No retries here: the caller decides on them.
_ONCE: Final[dict[str, Any]] = {"retry": None, "timeout": _TIMEOUT_S}


def _read(kind: type[T], message: object) -> T:
    text = cast("Any", type(message)).to_json(
        message, use_integers_for_enums=False, always_print_fields_with_no_presence=False
    )
    return msgspec.json.decode(text, type=kind)
