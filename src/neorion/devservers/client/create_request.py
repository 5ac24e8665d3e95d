"""A request for a new server, and its manifest."""

import re
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from neorion.devservers.client.durations import parse_span, span_text
from neorion.devservers.client.kube_context import user_name
from neorion.devservers.model import NAME_MAX, Backend, DevServerFlavorSpec, Mode, RankHomes
from neorion.devservers.model.field_types import DISTRIBUTED_NAME_MAX
from neorion.devservers.model.flavor import gpu_count
from neorion.devservers.model.tenancy import user_of
from neorion.keel.base import Invalid, did_you_mean, is_name

# A unit is required. Without one the number would be bytes, so 50 would become a home of 50 bytes.
_SIZE = re.compile(r"[1-9][0-9]{0,11}(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)")
_PUBLIC_KEY = re.compile(r"(ssh-|ecdsa-|sk-)[a-z0-9@.-]+ [A-Za-z0-9+/=]+( [^\n]*)?")
_REPLICAS_MAX = 4096
_PROCESSES_MAX = 64
# Processes fail when one of their peers is lost: without restarts no elastic run would outlive that.
_ELASTIC_RESTARTS = 3
_IMAGE = re.compile(r"\S{1,512}")


class DistributedRequest(Struct, frozen=True, kw_only=True):
    """Several machines that train together.

    Without `nproc_per_node`, each runs one process for each GPU of its flavor. Without a backend, it is nccl for flavors
    with GPUs, and gloo for others. `min_replicas` makes training elastic.
    """

    replicas: int = 1
    nproc_per_node: int = 0
    backend: str = ""
    min_replicas: int = 0
    shared_home: bool = False

    def __post_init__(self) -> None:
        _check_number("replicas", self.replicas, _REPLICAS_MAX, least=1)
        _check_number("nproc-per-node", self.nproc_per_node, _PROCESSES_MAX)
        _check_number("min-replicas", self.min_replicas, self.replicas)
        if self.backend and self.backend not in set(Backend):
            raise Invalid(
                "devservers.backend",
                f'"{self.backend}" is not a backend of PyTorch.',
                hint=did_you_mean(self.backend, set(Backend)) or "Choose nccl, gloo or mpi.",
            )

    def on(self, flavor: DevServerFlavorSpec) -> "DistributedRequest":
        """With what the flavor decides."""
        gpus = gpu_count(flavor)
        processes = self.nproc_per_node or max(1, gpus)
        _check_number("replicas times --nproc-per-node", self.replicas * processes, _REPLICAS_MAX)
        return replace(
            self,
            nproc_per_node=processes,
            backend=self.backend or (Backend.NCCL if gpus else Backend.GLOO).value,
        )

    def settings(self) -> dict[str, Any]:
        """The field `distributed` of a DevServer."""
        processes = max(1, self.nproc_per_node)
        settings: dict[str, Any] = {"worldSize": self.replicas * processes, "nprocsPerNode": processes}
        if self.backend:
            settings["backend"] = self.backend
        if self.min_replicas:
            settings |= {"minNodes": self.min_replicas, "maxRestarts": _ELASTIC_RESTARTS}
        if self.shared_home:
            settings["homes"] = RankHomes.SHARED.value
        return settings


class CreateRequest(Struct, frozen=True, kw_only=True):
    """A server to be made. What is left empty is left to the flavor and the operator.

    `ssh_keys` are public keys, each a line of a .pub file.
    """

    name: str
    flavor: str = ""
    image: str = ""
    home_size: str = ""
    time: str = ""
    shared_volume: str = ""
    owner: str = ""
    ssh_keys: tuple[str, ...] = ()
    distributed: DistributedRequest | None = None

    def __post_init__(self) -> None:
        if not is_name(self.name) or len(self.name) > NAME_MAX:
            raise Invalid(
                "devservers.name",
                f'"{self.name}" cannot be the name of a server.',
                hint=f"Use small letters, digits and hyphens, {NAME_MAX} at most, a letter or digit at both ends.",
            )
        if self.distributed is not None and len(self.name) > DISTRIBUTED_NAME_MAX:
            raise Invalid(
                "devservers.name",
                f'"{self.name}" is too long for the name of a distributed server.',
                hint=f"Use {DISTRIBUTED_NAME_MAX} letters at most: its StatefulSet is named after it.",
            )
        if self.home_size and not _SIZE.fullmatch(self.home_size):
            raise Invalid(
                "devservers.size",
                f'"{self.home_size}" is no size.',
                hint="Write a whole number with its unit, such as 100Gi.",
            )
        if self.image and not _IMAGE.fullmatch(self.image):
            raise Invalid(
                "devservers.image",
                f'"{self.image[:60]}" is no image.',
                hint="Write it as a registry does: pytorch/pytorch:latest.",
            )
        if self.shared_volume and not all(map(is_name, self.shared_volume.split("."))):
            raise Invalid(
                "devservers.claim",
                f'"{self.shared_volume}" cannot be the name of a volume claim.',
                hint="Use small letters, digits, hyphens and dots.",
            )
        for key in self.ssh_keys:
            public_key(key)
        if self.time:
            parse_span(self.time)

    def on(self, flavor: DevServerFlavorSpec) -> "CreateRequest":
        """With what the flavor decides."""
        return self if self.distributed is None else replace(self, distributed=self.distributed.on(flavor))

    def manifest(self, namespace: str, flavor: str) -> dict[str, Any]:
        """The DevServer, with `flavor` in place of one that was left open."""
        spec: dict[str, Any] = {"flavor": flavor}
        given = {
            # In a namespace of its own, a person is who the cluster says, whatever this machine calls them.
            "owner": self.owner or user_of(namespace) or user_name(),
            "image": self.image,
            "persistentHomeSize": self.home_size,
            "sharedVolumeClaimName": self.shared_volume,
        }
        spec |= {field: text for field, text in given.items() if text}
        if self.ssh_keys:
            spec["ssh"] = {"publicKeys": list(self.ssh_keys)}
        if self.time:
            spec["lifecycle"] = {"timeToLive": span_text(parse_span(self.time))}
        if self.distributed is not None:
            spec |= {"mode": Mode.DISTRIBUTED.value, "distributed": self.distributed.settings()}
        return {"metadata": {"name": self.name, "namespace": namespace}, "spec": spec}


def _check_number(what: str, number: int, most: int, least: int = 0) -> None:
    if not least <= number <= most:
        raise Invalid(
            "devservers.number",
            f"--{what} is {number}, and must be between {least} and {most}.",
            hint="Choose a number in that range.",
        )


def public_key(line: str) -> str:
    """The line, if it is a public key of SSH."""
    if not _PUBLIC_KEY.fullmatch(line):
        raise Invalid(
            "devservers.ssh_key",
            "That is not a public key of SSH.",
            hint="Give the file that ends in .pub, never the private key itself.",
        )
    return line
