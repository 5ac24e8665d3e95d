"""Manifests of an installation: an overlay of `infra/devservers` with the settings of one cluster."""

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from typing import Any, Final

import yaml

from neorion.devservers.adapters.install.resource_kinds import Manifest, in_order
from neorion.keel.base import Invalid, is_name

_SHARED_CLASS: Final = "devservers-shared"
_ECR_ACCOUNT: Final = re.compile(r"(\d{12})\.dkr\.ecr\.")
_ROLE: Final = "eks.amazonaws.com/role-arn"
_NO_ACCOUNT: Final = "000000000000"
# Images that are built beside the operator's, by the variable that names them.
_TOOLS_VARIABLE: Final = "DEVSERVERS_TOOLS_IMAGE"
_CONSOLE_VARIABLE: Final = "DEVSERVERS_CONSOLE_IMAGE"
_BESIDE: Final = {_TOOLS_VARIABLE: "devserver-tools", _CONSOLE_VARIABLE: "devservers-console"}
_IMAGE: Final = re.compile(r"\S{1,512}")
# Wherever guards speak of Kueue, and nowhere else.
_KUEUE: Final = ("kueue-system", "kueue-controller-manager")


class Overlay(StrEnum):
    """Which kind of cluster."""

    LOCAL = "local"
    AWS = "aws"


def rendered(overlay: Overlay, kueue: str = "") -> tuple[dict[str, Any], ...]:
    text = (
        files(__name__.rpartition(".")[0])
        .joinpath("manifests", f"{overlay.value}.yaml")
        .read_text(encoding="utf-8")
    )
    text = _queued(text, kueue) if kueue else text
    return tuple(yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


@dataclass(frozen=True, slots=True)
class ImageOverrides:
    """The images of the operator, of the tools for SSH in servers, and of consoles. Empty is as the overlay says.

    Without `tools` and `console` they are those built beside the operator's image: same registry, same tag. Without `ssh`
    there are no tools.
    """

    operator: str = ""
    tools: str = ""
    ssh: bool = True
    console: str = ""

    def __post_init__(self) -> None:
        for image in (self.operator, self.tools, self.console):
            if image and not _IMAGE.fullmatch(image):
                raise Invalid(
                    "devservers.image",
                    f'"{image[:60]}" is not a valid image.',
                    hint="Write it as a registry does: REGISTRY/devservers-operator:TAG.",
                )


OURS: Final = ImageOverrides()


def bundle(
    overlay: Overlay, images: ImageOverrides = OURS, efs: str = "", kueue: str = ""
) -> tuple[Manifest, ...]:
    """In the order in which it is applied. `efs` is the file system that shared volumes lie in.

    `kueue` is the account that Kueue runs as, where it is not its own default, as NAMESPACE/ACCOUNT.
    """
    if overlay is Overlay.AWS and not images.operator:
        raise Invalid(
            "devservers.no_image",
            "On AWS the operator's image lies in a registry of your own.",
            hint="Push it there and name it: devctl install aws --image ACCOUNT.dkr.ecr.REGION.amazonaws.com/devservers-operator:0.1.0.",
        )
    if overlay is not Overlay.AWS and efs:
        raise Invalid("devservers.efs", "--efs is for clusters on AWS.", hint="Leave it out, or install aws.")
    if images.tools and not images.ssh:
        raise Invalid(
            "devservers.tools_without_ssh",
            "Tools bring SSH, and it is left out.",
            hint="Leave out one of --tools-image and --no-ssh.",
        )
    chosen = deepcopy(rendered(overlay, kueue))
    if not efs:
        chosen = tuple(one for one in chosen if one["metadata"]["name"] != _SHARED_CLASS)
    for one in chosen:
        for container in _containers(one):
            _furnish(container, images)
        if one["kind"] == "ServiceAccount":
            _set_role(one["metadata"], images.operator)
        if one["metadata"]["name"] == _SHARED_CLASS:
            one["parameters"]["fileSystemId"] = efs
    return in_order(chosen)


def _queued(text: str, kueue: str) -> str:
    namespace, _, account = kueue.partition("/")
    if not is_name(namespace) or not all(map(is_name, account.split("."))):
        raise Invalid(
            "devservers.kueue",
            f'"{kueue}" names no account of Kueue.',
            hint=f"Write NAMESPACE/ACCOUNT, as in {'/'.join(_KUEUE)}.",
        )
    names: dict[str, str] = dict(zip(_KUEUE, (namespace, account), strict=True))
    return re.sub("|".join(_KUEUE), lambda found: names[found[0]], text)


def _containers(manifest: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    """Those that run the operator's image."""
    match manifest["kind"]:
        case "Deployment" | "StatefulSet":
            return manifest["spec"]["template"]["spec"]["containers"]
        case "CronJob":
            return manifest["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
        case _:
            return ()


def _set_role(meta: dict[str, Any], operator: str) -> None:
    """The role is of the account that the image lies in. Elsewhere the account is unknown, and there is no role."""
    role: str = meta.get("annotations", {}).get(_ROLE, "")
    account = _ECR_ACCOUNT.match(operator)
    if role and account:
        meta["annotations"][_ROLE] = role.replace(_NO_ACCOUNT, account[1])
    elif role:
        del meta["annotations"][_ROLE]


def _furnish(container: dict[str, Any], images: ImageOverrides) -> None:
    """The operator, the bastion and the user controller run from one image. Variables name the images beside it."""
    if images.operator:
        container["image"] = images.operator
    for variable in container.get("env", ()):
        name = variable["name"]
        if name not in _BESIDE:
            continue
        chosen = images.tools if name == _TOOLS_VARIABLE else images.console
        if name == _TOOLS_VARIABLE and not images.ssh:
            variable["value"] = ""
        elif chosen or images.operator:
            variable["value"] = chosen or _beside(images.operator, name)


def _beside(operator: str, variable: str) -> str:
    """A digest tells nothing of the images beside it: consoles are then left out."""
    if "@" in operator and variable == _CONSOLE_VARIABLE:
        return ""
    if "@" in operator:
        raise Invalid(
            "devservers.no_tools",
            "An image named by its digest does not say which tools were built beside it.",
            hint="Name them too, as in --tools-image REGISTRY/devserver-tools:0.1.0; or leave SSH out by --no-ssh.",
        )
    registry, slash, name = operator.rpartition("/")
    _, colon, tag = name.partition(":")
    return f"{registry}{slash}{_BESIDE[variable]}{colon}{tag}"
