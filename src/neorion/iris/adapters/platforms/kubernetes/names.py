"""Names and labels of the objects of one installation."""

from collections.abc import Mapping
from dataclasses import dataclass

from neorion.iris.model import SliceId


@dataclass(frozen=True, slots=True)
class Names:
    """Labels begin with `prefix`; `namespace` tells installations of one cluster apart."""

    prefix: str
    namespace: str

    def slice(self, group: str, piece: SliceId) -> str:
        """The Secret and the NodePool of a slice, as in `iris-h100-8x-01k9…`."""
        return f"{self.prefix}-{group.replace('_', '-')}-{piece.removeprefix('slice-')}"

    def shared_pool(self, group: str) -> str:
        """The NodePool of a scale group. NodePools have no namespace, so the name carries it."""
        return f"{self.prefix}-{self.namespace}-{group.replace('_', '-')}"

    def worker(self, slice_name: str, number: int, machines: int) -> str:
        """A worker Pod. A slice of one machine needs no number."""
        base = f"{self.prefix}-worker-{slice_name}"
        return base if machines == 1 else f"{base}-{number}"

    @property
    def managed(self) -> str:
        return f"{self.prefix}-managed"

    @property
    def scale_group(self) -> str:
        return f"{self.prefix}-scale-group"

    @property
    def slice_id(self) -> str:
        return f"{self.prefix}-slice-id"

    @property
    def installation(self) -> str:
        return f"{self.prefix}-namespace"

    @property
    def number(self) -> str:
        return f"{self.prefix}-worker-number"

    def group_labels(self, group: str) -> dict[str, str]:
        """Labels that all slices of a scale group share."""
        return {self.managed: "true", self.installation: self.namespace, self.scale_group: group}

    def labels(self, group: str, piece: SliceId) -> dict[str, str]:
        return {**self.group_labels(group), self.slice_id: str(piece)}

    @property
    def selector(self) -> str:
        """Everything of this installation and nothing of another."""
        return f"{self.managed}=true,{self.installation}={self.namespace}"

    def slice_of(self, labels: Mapping[str, str]) -> str:
        """The name of the slice that an object belongs to, or "" if its labels do not say."""
        group, piece = labels.get(self.scale_group, ""), labels.get(self.slice_id, "")
        return self.slice(group, SliceId(piece)) if group and piece else ""
