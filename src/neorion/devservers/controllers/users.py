"""Gives each DevServerUser their namespace, account and rights, and takes the rights away again.

No namespace is ever deleted here: what a user leaves behind is an administrator's to delete.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from neorion.devservers.controllers.devserver import to_datetime
from neorion.devservers.decide.tenant import (
    SERVERS_COUNTED,
    ApiAddress,
    ClusterInfo,
    Manifest,
    revoked_manifests,
)
from neorion.devservers.decide.user import UserDecision, UserObserved, decide_user
from neorion.devservers.model.flavor import is_gpu
from neorion.devservers.model.kube_types import (
    DEVSERVERFLAVORS,
    ENDPOINT_SLICES,
    USERS,
    DevServerFlavor,
    DevServerUser,
)
from neorion.devservers.model.kueue import LOCAL_QUEUES, LocalQueue
from neorion.devservers.model.tenancy import (
    CREATED_BY_LABEL,
    LOCAL_QUEUE,
    ROLE,
    USER_CONTROLLER,
    USER_LABEL,
    own_namespace,
)
from neorion.devservers.ports import KeyServer
from neorion.keel.base import Denied, Duration, Invalid, NotFound, QuotaExceeded
from neorion.keel.clock import Clock
from neorion.keel.kube import (
    Kind,
    KubeApi,
    KubeObject,
    MergePatch,
    ObjectKey,
    Selector,
    ServerError,
    UnknownKind,
)
from neorion.keel.kube.control import Applier, Fence, InformerFactory
from neorion.keel.kube.core import (
    CONFIG_MAP,
    NAMESPACE,
    NODE,
    POD,
    RESOURCE_QUOTA,
    SERVICE,
    SERVICE_ACCOUNT,
    Namespace,
    Node,
)
from neorion.keel.telemetry import logger

log = logger(__name__)

MANAGER: Final = USER_CONTROLLER
# Where the bastion's public keys stand, in the platform's namespace.
BASTION_KEYS: Final = "devservers-bastion"
AUTHORITY: Final = "authority.pub"
_API_NAMESPACE: Final = "default"
_API: Final = "kubernetes"
_RBAC: Final = "rbac.authorization.k8s.io"
_KINDS: Final[dict[str, Kind[Any]]] = {
    kind.name: kind
    for kind in (
        NAMESPACE,
        RESOURCE_QUOTA,
        SERVICE_ACCOUNT,
        CONFIG_MAP,
        POD,
        LOCAL_QUEUES,
        Kind(KubeObject, "LimitRange", "limitranges"),
        Kind(KubeObject, "NetworkPolicy", "networkpolicies", "networking.k8s.io"),
        Kind(KubeObject, "Role", "roles", _RBAC),
        Kind(KubeObject, "RoleBinding", "rolebindings", _RBAC),
    )
}


class UserCache:
    """The user controller's view of the cluster."""

    def __init__(self, informers: InformerFactory, system: str) -> None:
        # A user that cannot be read is not taken for one that is gone.
        self.users = informers.of(USERS, gaps=True)
        self.namespaces = informers.of(NAMESPACE, select=Selector(labels=USER_LABEL))
        self.flavors = informers.of(DEVSERVERFLAVORS)
        self.nodes = informers.of(NODE, packed=True)
        self.bastion_keys = informers.of(CONFIG_MAP, system, Selector(fields=f"metadata.name={BASTION_KEYS}"))
        # The API server as Pods reach it: its Service, and the addresses behind.
        self.api_service = informers.of(SERVICE, _API_NAMESPACE, Selector(fields=f"metadata.name={_API}"))
        self.api_slices = informers.of(
            ENDPOINT_SLICES, _API_NAMESPACE, Selector(labels=f"kubernetes.io/service-name={_API}")
        )

    @property
    def authority(self) -> str:
        return next((one.data.get(AUTHORITY, "") for one in self.bastion_keys), "").strip()

    def cluster(self) -> ClusterInfo:
        return ClusterInfo(self.gpu_kinds(), self.authority, self.api_addresses())

    def api_addresses(self) -> frozenset[ApiAddress]:
        services = {
            ApiAddress(one.spec.cluster_ip, port.port)
            for one in self.api_service
            for port in one.spec.ports
            if one.spec.cluster_ip
        }
        behind = {
            ApiAddress(address, port.port)
            for one in self.api_slices
            for endpoint in one.endpoints
            for address in endpoint.addresses
            for port in one.ports
            if port.port
        }
        return frozenset(services | behind)

    def gpu_kinds(self) -> frozenset[str]:
        """GPU resources of flavors and nodes, which pods of a user may request too."""
        kinds = (*map(gpus_of_flavor, self.flavors), *map(gpus_of_node, self.nodes))
        return frozenset[str]().union(*kinds)

    def everyone(self, _changed: object) -> Iterable[ObjectKey]:
        """Keys of all users, for a change that concerns each of them."""
        return self.users.keys()


def gpus_of_flavor(flavor: DevServerFlavor) -> frozenset[str]:
    resources = flavor.spec.resources
    return frozenset(filter(is_gpu, (*resources.requests, *resources.limits)))


def gpus_of_node(node: Node) -> frozenset[str]:
    return frozenset(filter(is_gpu, node.status.allocatable))


def user_key(namespace: Namespace) -> Iterable[ObjectKey]:
    """Key of the user of a namespace."""
    return (ObjectKey("", namespace.meta.labels[USER_LABEL]),)


@dataclass(frozen=True, slots=True)
class UserWriter:
    """Writers of the user controller."""

    api: KubeApi
    applier: Applier
    fence: Fence


class Users:
    """The reconcile of users."""

    def __init__(
        self, cache: UserCache, writer: UserWriter, clock: Clock, key_server: KeyServer | None = None
    ) -> None:
        self._key_server = key_server
        self._cache = cache
        self._api = writer.api
        self._applier = writer.applier
        self._fence = writer.fence
        self._clock = clock

    async def reconcile(self, key: ObjectKey) -> Duration | None:
        user = self._cache.users.get(key)
        if user is None:
            if key not in self._cache.users.unreadable:
                await self._revoke_removed(key.name)
            return None
        seen = await self._observe(user)
        now = to_datetime(self._clock.now())
        decision = decide_user(seen, now)
        try:
            await self._carry_out(seen, decision)
        except (Denied, ServerError, Invalid, QuotaExceeded) as error:
            decision = decide_user(replace(seen, refused=error.sentence), now)
            await self._applier.write_status(USERS, user, decision.status)
            raise
        await self._applier.write_status(USERS, user, decision.status)
        # The namespace was just made: look at once whether its quota is counted.
        return Duration(0) if seen.namespace is None else decision.wake

    async def _observe(self, user: DevServerUser) -> UserObserved:
        namespace = own_namespace(user.meta.name)
        space = quota = None
        with suppress(NotFound):
            space = await self._api.get(NAMESPACE, namespace)
            quota = await self._api.get(RESOURCE_QUOTA, ROLE, namespace)
        github, server = user.spec.github, self._key_server
        fetched = await server.keys(github) if github and server is not None else None
        queue, has_kueue = await self._queue(namespace)
        return UserObserved(user, space, quota, self._cache.cluster(), fetched, queue, has_kueue)

    async def _queue(self, namespace: str) -> tuple[LocalQueue | None, bool]:
        """The queue of a user, and whether the cluster has Kueue."""
        try:
            return await self._api.get(LOCAL_QUEUES, LOCAL_QUEUE, namespace), True
        except UnknownKind:
            return None, False
        except NotFound:
            return None, True

    async def _carry_out(self, seen: UserObserved, decision: UserDecision) -> None:
        await self._revoke(decision.revoked)
        for manifest in decision.objects:
            self._fence.check()
            # By force: a user's rights are what this says, whatever was made of them since. An apply that changes
            # nothing is not written.
            await self._api.apply(_KINDS[manifest["kind"]], manifest, MANAGER, force=True)
        if decision.recount:
            await self._recount(seen)

    async def _recount(self, seen: UserObserved) -> None:
        """Changes the quota to nothing and back, which has the cluster count it.

        A kind that has just been installed is known to the cluster half a minute later, and a quota that was there
        before is counted only when its limits change.
        """
        if seen.quota is None:
            return
        for servers in ("0", str(seen.user.spec.quota.servers)):
            self._fence.check()
            limit = MergePatch({"spec": {"hard": {SERVERS_COUNTED: servers}}})
            await self._api.patch(RESOURCE_QUOTA, ROLE, limit, own_namespace(seen.user.meta.name))

    async def _revoke_removed(self, name: str) -> None:
        """Only where this controller gave the rights: users from before there was one are left alone."""
        space = self._cache.namespaces.get(ObjectKey("", own_namespace(name)))
        if space is None or space.meta.labels.get(CREATED_BY_LABEL) != USER_CONTROLLER or space.meta.deleted:
            return
        await self._revoke(revoked_manifests(name))
        log.info("user removed", user=name, kept=space.meta.name)

    async def _revoke(self, manifests: tuple[Manifest, ...]) -> None:
        """Bindings before the account, whose end makes its tokens worthless."""
        for manifest in reversed(manifests):
            kind = _KINDS[manifest["kind"]]
            self._fence.check()
            with suppress(NotFound):
                await self._api.delete(kind, manifest["metadata"]["name"], manifest["metadata"]["namespace"])
