"""Shows the open connections of a replica as DevServerSessions, and closes those whose object is deleted."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from neorion.devservers.bastion.sessions import OpenConnection, Sessions
from neorion.devservers.model.kube_types import SESSIONS, DevServerSession
from neorion.devservers.model.session import REPLICA_LABEL, SESSION_USER_LABEL, DevServerSessionSpec
from neorion.devservers.model.tenancy import SYSTEM_NAMESPACE
from neorion.keel.base import Duration, NotFound
from neorion.keel.clock import Clock, Rng
from neorion.keel.kube import AlreadyExists, KubeApi, ObjectMeta, OwnerReference, Selector
from neorion.keel.kube.control import InformerFactory, Priority
from neorion.keel.run import Loop, LoopTiming

_EVERY: Final = Duration.of(minutes=5)
_TEXT_MAX: Final = 256


@dataclass(frozen=True, slots=True)
class Replica:
    """A bastion process. With the uid of its Pod its objects go when the Pod goes."""

    name: str
    pod_uid: str = ""

    @property
    def owners(self) -> tuple[OwnerReference, ...]:
        if not self.pod_uid:
            return ()
        return (OwnerReference(api_version="v1", kind="Pod", name=self.name, uid=self.pod_uid),)


class SessionObjects:
    """One object for each connection of this replica. Those of an earlier process of its name are deleted."""

    def __init__(
        self, api: KubeApi, informers: InformerFactory, sessions: Sessions, replica: Replica
    ) -> None:
        self._api = api
        self._sessions = sessions
        self._replica = replica
        mine = Selector(labels=f"{REPLICA_LABEL}={replica.name}")
        self._objects = informers.of(SESSIONS, SYSTEM_NAMESPACE, mine)
        self._objects.listen(self._on_change)
        # Connections whose object was deleted while they were open.
        self._killed: set[str] = set()

    def loop(self, clock: Clock, rng: Rng) -> Loop:
        loop = Loop("session objects", self.reconcile, LoopTiming(_EVERY), clock, rng)
        self._sessions.listen(loop.wake)
        return loop

    async def reconcile(self) -> None:
        shown = {one.meta.name for one in self._objects}
        for session in self._sessions:
            if session.id not in shown and session.id not in self._killed:
                with suppress(AlreadyExists):
                    self._objects.observe(await self._api.create(SESSIONS, self._object(session)))
        for name in shown:
            if self._sessions.get(name) is None:
                with suppress(NotFound):
                    await self._api.delete(SESSIONS, name, SYSTEM_NAMESPACE)
        self._killed = {name for name in self._killed if self._sessions.get(name) is not None}

    def _object(self, session: OpenConnection) -> DevServerSession:
        labels = {REPLICA_LABEL: self._replica.name, SESSION_USER_LABEL: session.user}
        return DevServerSession(
            meta=ObjectMeta(
                name=session.id, namespace=SYSTEM_NAMESPACE, labels=labels, owners=self._replica.owners
            ),
            spec=DevServerSessionSpec(
                user=session.user,
                server=session.server,
                source=session.source[:_TEXT_MAX],
                client=session.client[:_TEXT_MAX],
                key=session.fingerprint,
                replica=self._replica.name,
                since=session.since,
            ),
        )

    def _on_change(
        self, before: DevServerSession | None, after: DevServerSession | None, lane: Priority
    ) -> None:
        del lane
        if before is None or after is not None:
            return
        session = self._sessions.get(before.meta.name)
        if session is not None:
            self._killed.add(session.id)
            session.cut("an administrator ended the session")
