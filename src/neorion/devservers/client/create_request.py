"""What somebody asks for who wants a server, and the DevServer that says so."""

import re
from typing import Any

from msgspec import Struct

from neorion.devservers.client.durations import parse_span, span_text
from neorion.devservers.client.kube_context import user_name
from neorion.devservers.model import NAME_MAX, Mode
from neorion.devservers.model.tenancy import user_of
from neorion.keel.base import Invalid, is_name

# Without a unit it would be bytes, which nobody means: 50 would become a home of fifty.
_SIZE = re.compile(r"[1-9][0-9]{0,11}(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)")
_PUBLIC_KEY = re.compile(r"(ssh-|ecdsa-|sk-)[a-z0-9@.-]+ [A-Za-z0-9+/=]+( [^\n]*)?")
_IMAGE = re.compile(r"\S{1,512}")


class CreateRequest(Struct, frozen=True, kw_only=True):
    """A server to be made. What is left empty is left to the flavor and the operator.

    `ssh_keys` are public keys, each a line of a .pub file. `replicas` is for distributed servers: how many machines train together.
    """

    name: str
    flavor: str = ""
    image: str = ""
    home_size: str = ""
    time: str = ""
    shared_volume: str = ""
    owner: str = ""
    ssh_keys: tuple[str, ...] = ()
    replicas: int = 0

    def __post_init__(self) -> None:
        if not is_name(self.name) or len(self.name) > NAME_MAX:
            raise Invalid(
                "devservers.name",
                f'"{self.name}" cannot be the name of a server.',
                hint=f"Use small letters, digits and hyphens, {NAME_MAX} at most, a letter or digit at both ends.",
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
        if self.replicas:
            spec |= {"mode": Mode.DISTRIBUTED.value, "distributed": {"worldSize": self.replicas}}
        return {"metadata": {"name": self.name, "namespace": namespace}, "spec": spec}


def public_key(line: str) -> str:
    """The line, if it is a public key of SSH."""
    if not _PUBLIC_KEY.fullmatch(line):
        raise Invalid(
            "devservers.ssh_key",
            "That is not a public key of SSH.",
            hint="Give the file that ends in .pub, never the private key itself.",
        )
    return line
