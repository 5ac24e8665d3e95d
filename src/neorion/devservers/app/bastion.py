"""The bastion as a process: its keys from the cluster, its users from a watch, its listener."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
import asyncssh

from neorion.devservers.adapters.identity import UserAuthorities
from neorion.devservers.bastion import (
    SWEEP_EVERY,
    AuditLog,
    ClusterContainers,
    ClusterServers,
    Context,
    Directory,
    FirstLogins,
    Limits,
    Replica,
    Retention,
    SessionObjects,
    Signer,
    listen,
    sweep,
)
from neorion.devservers.bastion.sessions import Sessions
from neorion.devservers.controllers.bastion_keys import AUTHORITY_KEY, HOST_KEY
from neorion.devservers.controllers.users import BASTION_KEYS
from neorion.devservers.model.tenancy import SYSTEM_NAMESPACE
from neorion.keel.base import Duration, NotFound
from neorion.keel.clock import Clock, SystemClock, SystemIds, system_rng
from neorion.keel.kube import KubeApi
from neorion.keel.kube.client import ClusterConfig, connect
from neorion.keel.kube.client.discovery import ACCOUNT
from neorion.keel.kube.control import InformerFactory
from neorion.keel.kube.core import SECRET, Secret
from neorion.keel.run import Loop, LoopTiming, Supervisor
from neorion.keel.telemetry import logger

log = logger(__name__)

_LAST_WRITES_S: Final = 5
# The user controller makes the keys when it first holds its lease.
_KEYS_AGAIN: Final = Duration.of(seconds=1)


@dataclass(frozen=True, slots=True)
class BastionOptions:
    """The address of the bastion, and the places that it writes to.

    `direct` connects to servers by their Pods' addresses. `recordings` is a folder; without it terminals are not recorded.
    `user_ca` is a file of public keys whose certificates log in. `host_name` are the names that users reach it by. `console_image` is the image of consoles; without it a login has to name a server.
    """

    host: str
    port: int
    audit: Path
    direct: bool = False
    recordings: Path | None = None
    console_image: str = ""
    replica: str = ""
    keep: Retention = Retention()  # noqa: RUF009 -- frozen
    drain_s: float = 0.0
    user_ca: Path | None = None
    post_quantum: bool = False
    host_name: tuple[str, ...] = ()


async def run_bastion(crew: Supervisor, find: Callable[[], ClusterConfig], options: BastionOptions) -> None:
    """Until the crew stops. `find` says which cluster, once the token of its account is there."""
    # It tells every packet of interest to people who debug it, commands of users among them.
    asyncssh.set_log_level("WARNING")
    # It asks for the name of the local user, and a container may run as a number without one.
    os.environ.setdefault("LOGNAME", "bastion")
    clock, rng = SystemClock(), system_rng()
    while "KUBERNETES_SERVICE_HOST" in os.environ and not (ACCOUNT / "token").exists():
        # The user controller beside it writes the token.
        await clock.sleep(_KEYS_AGAIN)
    async with connect(find(), "devservers-bastion", clock, rng) as api:
        keys = await _keys(api, clock)
        informers = InformerFactory(api, clock, rng)
        directory = Directory(informers)
        replica = Replica(options.replica or os.environ.get("POD_NAME", ""), os.environ.get("POD_UID", ""))
        sessions = Sessions()
        objects = SessionObjects(api, informers, sessions, replica) if replica.name else None
        async with anyio.create_task_group() as group:
            group.start_soon(informers.run)
            await informers.wait_synced()
            audit = AuditLog(options.audit, replica.name)

            async def delete_old() -> None:
                sweep(audit, options.recordings, options.keep, clock)

            signer = Signer(_private(keys, AUTHORITY_KEY))
            context = Context(
                directory,
                ClusterServers(api, clock, direct=options.direct),
                ClusterContainers(api, clock, options.console_image),
                signer,
                FirstLogins(api, directory, clock),
                audit,
                clock,
                SystemIds(),
                Limits(drain_s=options.drain_s, post_quantum=options.post_quantum),
                recordings_folder=options.recordings,
                sessions=sessions,
                authorities=UserAuthorities(options.user_ca),
            )
            if objects is not None:
                crew.loop(objects.loop(clock, rng))
            crew.loop(Loop("retention", delete_old, LoopTiming(SWEEP_EVERY), clock, rng))
            identity = signer.host_identity(_private(keys, HOST_KEY), options.host_name)
            async with listen(context, identity, options.host, options.port) as port:
                log.info("bastion listens", host=options.host, port=port)
                await crew.stopping.wait()
            if objects is not None:
                # Its loop has stopped: the objects of closed sessions are left to delete.
                with anyio.move_on_after(_LAST_WRITES_S):
                    await objects.reconcile()
            audit.close()
            group.cancel_scope.cancel()


async def _keys(api: KubeApi, clock: Clock) -> Secret:
    logged = False
    while True:
        try:
            return await api.get(SECRET, BASTION_KEYS, SYSTEM_NAMESPACE)
        except NotFound:
            if not logged:
                log.info("waits for its keys", secret=f"{SYSTEM_NAMESPACE}/{BASTION_KEYS}")
                logged = True
            await clock.sleep(_KEYS_AGAIN)


def _private(keys: Secret, name: str) -> asyncssh.SSHKey:
    text = keys.value(name)
    if text is None:
        raise NotFound(
            "devservers.bastion_keys",
            f"The Secret {keys.meta.key} has no {name}.",
            hint="Delete it: the user controller makes another one when it starts.",
        )
    return asyncssh.import_private_key(text)
