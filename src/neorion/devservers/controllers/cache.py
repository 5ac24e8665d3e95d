"""Informers of the operator, and the view of a server that is built from them."""

from collections.abc import Iterable
from typing import Any

from neorion.devservers.controllers.queue import QueueCache
from neorion.devservers.decide import (
    HOME_DELETE_AFTER,
    HOME_LABEL,
    SCRIPTS_LABEL,
    SERVER_LABEL,
    ActivityHistory,
    Manifest,
    Observed,
    flavors_of,
    home_name,
    max_per_user,
    servers_before,
)
from neorion.devservers.decide.names import rank_home_name
from neorion.devservers.decide.sshd_injection import AUTHORIZED_KEYS
from neorion.devservers.model.kube_types import (
    DEPLOYMENTS,
    DEVSERVERFLAVORS,
    DEVSERVERS,
    STATEFUL_SETS,
    DevServerFlavor,
    DevServerObject,
)
from neorion.devservers.model.kueue import WORKLOADS
from neorion.devservers.model.tenancy import USER_KEYS
from neorion.keel.kube import Kind, KubeObject, ObjectKey, Selector
from neorion.keel.kube.control import Informer, InformerFactory
from neorion.keel.kube.core import CLAIM, CONFIG_MAP, POD, SERVICE, ConfigMap, PersistentVolumeClaim, Pod

OURS = Selector(labels=SERVER_LABEL)


class ClusterCache:
    """One informer per kind, for objects with our label only; of one namespace, or of all."""

    def __init__(self, informers: InformerFactory, scope: str = "", *, kueue: bool = False) -> None:
        # Also lists servers that cannot be decoded, so that `HomeController` does not take them for deleted.
        self.servers = informers.of(DEVSERVERS, scope, packed=True, gaps=True)
        self.flavors = informers.of(DEVSERVERFLAVORS)
        self.claims = informers.of(CLAIM, scope, Selector(labels=HOME_LABEL), packed=True)
        self.deployments = informers.of(DEPLOYMENTS, scope, OURS, packed=True)
        self.stateful_sets = informers.of(STATEFUL_SETS, scope, OURS, packed=True)
        self.pods = informers.of(POD, scope, OURS, packed=True)
        self.services = informers.of(SERVICE, scope, OURS, packed=True)
        self.scripts = informers.of(CONFIG_MAP, scope, Selector(labels=SCRIPTS_LABEL))
        self.queues = QueueCache(informers) if kueue else None
        # What looks have seen of each server; only this process knows it.
        self.sights: dict[ObjectKey, ActivityHistory] = {}
        made: tuple[Informer[Any], ...] = (
            self.claims,
            self.deployments,
            self.stateful_sets,
            self.services,
            self.scripts,
        )
        self._made = {informer.kind.name: informer for informer in made}
        self._homes_of = self.claims.index(_home_owner)
        self._pods_of = self.pods.index(_server_of)
        self._on_flavor = self.servers.index(flavors_of)
        self._in_namespace = self.servers.index(_namespace_of)
        self._rationed = self.servers.index(_rations_of)

    def observed(self, key: ObjectKey) -> Observed | None:
        server = self.servers.get(key)
        if server is None:
            return None
        sight = self.sights.get(key)
        asked, *others = flavors_of(server)
        return Observed(
            server=server,
            flavor=self.flavors.get(ObjectKey("", asked)),
            home=self.claims.get(ObjectKey(key.namespace, _first_home_name(server))),
            body=self.deployments.get(key)
            if server.spec.distributed is None
            else self.stateful_sets.get(key),
            pods=tuple(self._pods_of.get(key)),
            look=sight.look if sight else None,
            ahead=servers_before(server, self._same_user_servers(server, asked)),
            user_keys=self._keys_of_user(key.namespace),
            standing=next((self.flavors.get(ObjectKey("", other)) for other in others), None),
            kept_homes=tuple(self._homes_of.get(key)),
            quota=self.queues.entry(server, self.flavors.get(ObjectKey("", asked))) if self.queues else None,
        )

    def standing(self, manifest: Manifest) -> tuple[Kind[Any], KubeObject | None]:
        """The kind of an object to be applied, and the object as it stands."""
        if self.queues is not None and manifest["kind"] == WORKLOADS.name:
            meta = manifest["metadata"]
            return WORKLOADS, self.queues.workloads.get(ObjectKey(meta["namespace"], meta["name"]))
        informer = self._made[manifest["kind"]]
        meta = manifest["metadata"]
        return informer.kind, informer.get(ObjectKey(meta["namespace"], meta["name"]))

    def _keys_of_user(self, namespace: str) -> str:
        found = self.scripts.get(ObjectKey(namespace, USER_KEYS))
        return found.data.get(AUTHORIZED_KEYS, "") if found is not None else ""

    def of_user_keys(self, keys: ConfigMap) -> Iterable[ObjectKey]:
        """Every server of the user whose keys these are."""
        if keys.meta.name != USER_KEYS:
            return ()
        return self._in_namespace.keys(keys.meta.namespace)

    def on_flavor(self, flavor: DevServerFlavor) -> Iterable[ObjectKey]:
        """The servers a change of the flavor concerns."""
        return self._on_flavor.keys(flavor.meta.name)

    def marked_home_of(self, server: DevServerObject) -> Iterable[ObjectKey]:
        return (key for home in self._homes_of.get(server.meta.key) for key in expiring_home(home))

    def competing_servers(self, server: DevServerObject) -> Iterable[ObjectKey]:
        """Those who may get what this server had, or lose to it, where its flavor is rationed."""
        return (
            other.meta.key
            for flavor in flavors_of(server)
            for other in self._same_user_servers(server, flavor)
        )

    def _same_user_servers(self, server: DevServerObject, flavor: str) -> Iterable[DevServerObject]:
        """Servers of the same user with the flavor. Empty if it has no per-user limit, because there may be thousands."""
        if max_per_user(self.flavors.get(ObjectKey("", flavor))) is None:
            return ()
        ration = (server.meta.namespace, flavor)
        return (other for other in self._rationed.get(ration) if other.meta.name != server.meta.name)


def expiring_home(home: PersistentVolumeClaim) -> Iterable[ObjectKey]:
    """Index of homes that have a deletion time, which are few."""
    return (home.meta.key,) if HOME_DELETE_AFTER in home.meta.annotations else ()


def idle_stop_enabled(server: DevServerObject) -> Iterable[ObjectKey]:
    """Index of servers that may stop for idleness, which are the only ones to probe."""
    return (server.meta.key,) if server.spec.running and server.spec.lifecycle.auto_shutdown else ()


def server_key(thing: KubeObject) -> Iterable[ObjectKey]:
    """Children name their server in a label: a home has no owner to name it."""
    name = thing.meta.labels.get(SERVER_LABEL)
    return (ObjectKey(thing.meta.namespace, name),) if name else ()


def _server_of(pod: Pod) -> Iterable[ObjectKey]:
    return server_key(pod)


def _home_owner(home: PersistentVolumeClaim) -> Iterable[ObjectKey]:
    name = home.meta.labels.get(HOME_LABEL)
    return (ObjectKey(home.meta.namespace, name),) if name else ()


def _first_home_name(server: DevServerObject) -> str:
    name, distributed = server.meta.name, server.spec.distributed
    return (
        rank_home_name(name, 0) if distributed is not None and distributed.has_rank_homes else home_name(name)
    )


def _namespace_of(server: DevServerObject) -> Iterable[str]:
    return (server.meta.namespace,)


def _rations_of(server: DevServerObject) -> Iterable[tuple[str, str]]:
    """Index of servers by namespace and flavor. The namespace stands for the user."""
    return ((server.meta.namespace, flavor) for flavor in flavors_of(server))
