"""What a cluster is given: an overlay of `infra/devservers`, with the few things that differ between two clusters."""

from copy import deepcopy
from enum import StrEnum
from importlib.resources import files
from typing import Any, Final

import yaml

from neorion.devservers.adapters.install.kinds import Manifest, in_order
from neorion.keel.base import Invalid

_SHARED_CLASS: Final = "devservers-shared"


class Overlay(StrEnum):
    """Which kind of cluster."""

    LOCAL = "local"
    AWS = "aws"


def rendered(overlay: Overlay) -> tuple[dict[str, Any], ...]:
    text = (
        files(__name__.rpartition(".")[0])
        .joinpath("manifests", f"{overlay.value}.yaml")
        .read_text(encoding="utf-8")
    )
    return tuple(yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def bundle(overlay: Overlay, image: str = "", efs: str = "") -> tuple[Manifest, ...]:
    """In the order in which it is applied. `image` is the operator's; `efs` the file system that shared volumes lie in."""
    if overlay is Overlay.AWS and not image:
        raise Invalid(
            "devservers.no_image",
            "On AWS the operator's image lies in a registry of your own.",
            hint="Push it there and name it: devctl install aws --image ACCOUNT.dkr.ecr.REGION.amazonaws.com/devservers-operator:0.1.0",
        )
    if overlay is not Overlay.AWS and efs:
        raise Invalid("devservers.efs", "--efs is for clusters on AWS.", hint="Leave it out, or install aws.")
    chosen = deepcopy(rendered(overlay))
    if not efs:
        chosen = tuple(one for one in chosen if one["metadata"]["name"] != _SHARED_CLASS)
    for one in chosen:
        if one["kind"] == "Deployment" and image:
            one["spec"]["template"]["spec"]["containers"][0]["image"] = image
        if one["metadata"]["name"] == _SHARED_CLASS:
            one["parameters"]["fileSystemId"] = efs
    return in_order(chosen)
