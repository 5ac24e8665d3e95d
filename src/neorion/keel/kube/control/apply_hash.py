"""An annotation on applied objects. A restarted operator sees by it that nothing has to be applied."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, Self, cast

import msgspec

from neorion.keel.kube.objects import KubeObject, ObjectMeta

# `<hash of the spec>.<hash of the metadata>/<generation after the apply>`.
APPLIED: Final = "neorion.dev/applied"
# Fields that the spec comparison skips: `has_metadata` compares the metadata, the others are constant for a kind.
_NAMES: Final = frozenset({"apiVersion", "kind", "metadata"})


@dataclass(frozen=True, slots=True)
class DesiredManifest:
    """A manifest to apply, and the hashes that identify it."""

    body: dict[str, Any]
    metadata: dict[str, Any]
    spec_hash: str
    hashes: str

    @classmethod
    def of(cls, body: dict[str, Any]) -> Self:
        metadata: dict[str, Any] = body.get("metadata", {})
        spec_hash = _hash({name: part for name, part in body.items() if name != "metadata"})
        return cls(body, metadata, spec_hash, f"{spec_hash}.{_hash(metadata)}")

    def with_annotation(self, observed: ObjectMeta | None) -> dict[str, Any]:
        """The manifest with its annotation, bound to the uid and version of the object that was observed."""
        mark = f"{self.hashes}/{self._generation(observed)}"
        annotations: dict[str, str] = self.metadata.get("annotations", {})
        metadata = {**self.metadata, "annotations": {**annotations, APPLIED: mark}}
        if observed is not None:
            metadata |= {"uid": observed.uid, "resourceVersion": observed.resource_version}
        return {**self.body, "metadata": metadata}

    def is_last_applied(self, observed: ObjectMeta) -> bool:
        """True if the annotation states that this manifest was applied last and the spec is unchanged since."""
        return (
            observed.generation > 0
            and observed.annotations.get(APPLIED) == f"{self.hashes}/{observed.generation}"
        )

    def matches_observed(self, observed: KubeObject) -> bool:
        """True if this manifest was applied last and the object still contains all of it, for kinds without generations.

        Fields that the kind's type omits cannot be compared: such an object is applied once after every start.
        """
        mark = observed.meta.annotations.get(APPLIED, "")
        if observed.meta.generation > 0 or mark.partition("/")[0] != self.hashes:
            return False
        wanted = {name: part for name, part in self.body.items() if name not in _NAMES}
        return _holds(msgspec.to_builtins(observed), wanted)

    def has_metadata(self, observed: ObjectMeta) -> bool:
        """True if the observed metadata contains the desired metadata.

        Changes to metadata do not increase the generation.
        """
        owners = {owner.uid for owner in observed.owners}
        return (
            self.metadata.get("labels", {}).items() <= observed.labels.items()
            and self.metadata.get("annotations", {}).items() <= observed.annotations.items()
            and owners.issuperset(owner["uid"] for owner in self.metadata.get("ownerReferences", ()))
            and set(observed.finalizers).issuperset(self.metadata.get("finalizers", ()))
        )

    def _generation(self, observed: ObjectMeta | None) -> int:
        """The expected generation after this apply. A wrong guess costs one apply after the next start."""
        if observed is None:
            return 1
        before, _, generation = observed.annotations.get(APPLIED, "").partition("/")
        untouched = before.startswith(f"{self.spec_hash}.") and generation == str(observed.generation)
        return observed.generation if untouched else observed.generation + 1


def _holds(whole: object, wanted: object) -> bool:
    """True if `whole` contains everything in `wanted`; additional fields are ignored."""
    if whole == wanted:
        return True
    if isinstance(wanted, dict) and isinstance(whole, dict):
        found, required = cast("dict[str, object]", whole), cast("dict[str, object]", wanted)
        return all(name in found and _holds(found[name], part) for name, part in required.items())
    if isinstance(wanted, list | tuple) and isinstance(whole, list | tuple):
        pairs = (cast("Sequence[object]", whole), cast("Sequence[object]", wanted))
        return len(pairs[0]) == len(pairs[1]) and all(map(_holds, *pairs))
    return False


def _hash(part: dict[str, Any]) -> str:
    return blake2b(msgspec.json.encode(part, order="deterministic"), digest_size=6).hexdigest()
