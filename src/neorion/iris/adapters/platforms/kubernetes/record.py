"""The record of a slice: a Secret with its workers' token, annotated with the request and its outcome.

It is the first object of a slice and the last one to go: a later controller finds the slice by it.
"""

from base64 import b64encode
from typing import Any, Final

import msgspec
from msgspec import Struct

from neorion.iris.adapters.platforms.kubernetes.names import Names
from neorion.iris.model import Resources, ScaleFailureKind, SliceId
from neorion.iris.ports import SliceRequest
from neorion.keel.kube import ObjectMeta
from neorion.keel.kube.core import Secret
from neorion.keel.telemetry import logger

log = logger(__name__)

TOKEN: Final = "token"  # noqa: S105 -- the name of a file
_ORDER: Final = "neorion.dev/slice-order"
_STARTED: Final = "neorion.dev/slice-started"
_DELETING: Final = "neorion.dev/slice-deleting"
_FAILURE: Final = "neorion.dev/slice-failure"
_TROUBLE: Final = "neorion.dev/slice-trouble"


class SliceSpec(Struct, frozen=True):
    """The request for a slice, without its token. `shared_pool` names the NodePool of its group, if its group has one."""

    id: str
    group: str
    machines: int
    shape: Resources
    attributes: tuple[tuple[str, str], ...]
    controller: str
    shared_pool: str = ""


class Record(Struct, frozen=True):
    """A slice. It has started when all of its Pods were created: one that is missing later was lost."""

    name: str
    uid: str
    spec: SliceSpec
    started: bool = False
    deleting: bool = False
    failure: str = ""
    trouble: ScaleFailureKind | None = None

    @property
    def id(self) -> SliceId:
        return SliceId(self.spec.id)

    @property
    def group(self) -> str:
        return self.spec.group

    @property
    def machines(self) -> int:
        return self.spec.machines

    @property
    def shared(self) -> bool:
        """True when its machines come from the NodePool of its group."""
        return bool(self.spec.shared_pool)

    @property
    def pool(self) -> str:
        """The name of its NodePool, where slices have NodePools."""
        return self.spec.shared_pool or self.name

    @property
    def live(self) -> bool:
        """True when it waits for machines or uses them."""
        return not self.deleting and not self.failure


def secret_of(order: SliceRequest, names: Names, shared_pool: str = "") -> dict[str, Any]:
    spec = SliceSpec(
        str(order.id),
        order.group,
        order.machines,
        order.shape,
        order.attributes,
        order.controller,
        shared_pool,
    )
    return {
        "metadata": {
            "name": names.slice(order.group, order.id),
            "namespace": names.namespace,
            "labels": names.labels(order.group, order.id),
            "annotations": {_ORDER: msgspec.json.encode(spec).decode()},
        },
        "type": "Opaque",
        "data": {TOKEN: b64encode(order.token.encode()).decode()},
    }


def record_of(secret: Secret) -> Record | None:
    """None for a Secret that carries our labels but was not written here."""
    meta, notes = secret.meta, secret.meta.annotations
    try:
        spec = msgspec.json.decode(notes.get(_ORDER, ""), type=SliceSpec)
        trouble = ScaleFailureKind(notes[_TROUBLE]) if notes.get(_TROUBLE) else None
    except (msgspec.DecodeError, ValueError) as error:
        log.warning("the Secret is not the record of a slice", secret=str(meta.key), why=str(error))
        return None
    return Record(
        name=meta.name,
        uid=meta.uid,
        spec=spec,
        started=_STARTED in notes,
        deleting=_DELETING in notes or meta.deleted is not None,
        failure=notes.get(_FAILURE, ""),
        trouble=trouble,
    )


def started(meta: ObjectMeta) -> dict[str, Any]:
    return _noted(meta, {_STARTED: "true"})


def deleting(meta: ObjectMeta) -> dict[str, Any]:
    return _noted(meta, {_DELETING: "true"})


def failed(meta: ObjectMeta, message: str, trouble: ScaleFailureKind) -> dict[str, Any]:
    return _noted(meta, {_FAILURE: message, _TROUBLE: trouble.value})


def _noted(meta: ObjectMeta, notes: dict[str, str]) -> dict[str, Any]:
    """A merge patch for this very Secret: one of the same name that came later is left alone."""
    return {"metadata": {"uid": meta.uid, "annotations": notes}}
