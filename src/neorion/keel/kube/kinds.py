"""A kind: where its objects live in the API, and the type they are read into."""

from collections.abc import Mapping
from typing import Generic, TypeVar, cast
from urllib.parse import quote

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from neorion.keel.base import Invalid
from neorion.keel.kube.objects import ObjectKey

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

# An object as it is written in a file: what people and charts send to the server.
Manifest = Mapping[str, object]


class Kind(Struct, Generic[T_co], frozen=True):
    """One line defines a kind: `Kind(DevServer, "DevServer", "devservers", "devservers.io")`.

    `type` declares only the fields that are read. `whole` says that it declares all of them: only then may an object that
    was read be written back by `replace`, because what was not declared would be lost.
    """

    type: type[T_co]
    name: str
    plural: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    whole: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The name rights are given by, `devservers.devservers.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def raw(self) -> "Kind[dict[str, object]]":
        """The same objects, read with every field."""
        return cast("Kind[dict[str, object]]", replace(self, type=dict[str, object], whole=True))

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The address in the API; without a namespace, of all namespaces."""
        if namespace and not self.namespaced:
            raise Invalid(
                "kube.cluster_wide",
                f"{self.name} is cluster-wide and lives in no namespace.",
                hint=f'Leave out the namespace "{namespace}".',
            )
        if name and self.namespaced and not namespace:
            raise Invalid(
                "kube.namespace",
                f'{self.name} "{name}" needs a namespace.',
                hint="Give the namespace it lives in.",
            )
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        parts += ["namespaces", namespace] if namespace else []
        parts += [self.plural, *(part for part in (name, subresource) if part)]
        if any(part in {".", ".."} for part in parts):
            raise Invalid(
                "kube.name", f'"{name}" is no name of an object.', hint="Use letters, digits and dashes."
            )
        return "/" + "/".join(quote(part, safe="") for part in parts)

    def object_path(self, namespace: str, name: str, subresource: str = "") -> str:
        """The address of one object. Without a name it would be that of all of them, and a deletion theirs."""
        if not name:
            raise Invalid("kube.name", f"A {self.name} without a name is none.", hint="Give its name.")
        return self.path(namespace, name, subresource)

    def manifest(self, thing: object) -> dict[str, object]:
        """What is sent to the server: the declared fields that differ from their defaults, with kind and version."""
        body = cast("Manifest", thing if isinstance(thing, Mapping) else msgspec.to_builtins(thing))
        return {"apiVersion": self.api_version, "kind": self.name, **body}

    def whole_manifest(self, thing: object) -> dict[str, object]:
        """What may be written in place of all that is there."""
        if self.whole or isinstance(thing, Mapping):
            return self.manifest(cast("object", thing))
        raise Invalid(
            "kube.partial",
            f"{self.name} is read in part: writing it back whole would lose the rest.",
            hint="Use apply or patch, or read it by `kind.raw`.",
        )

    def key(self, manifest: Manifest) -> ObjectKey:
        """The namespace and the name that a manifest gives itself; the name may be left to the server."""
        try:
            meta = msgspec.convert(manifest.get("metadata", {}), _Named)
        except msgspec.ValidationError as error:
            raise Invalid(
                "kube.metadata", f"The metadata of a {self.name} are wrong: {error}.", hint="Correct them."
            ) from None
        if self.namespaced and not meta.namespace:
            raise Invalid(
                "kube.namespace",
                f'{self.name} "{meta.name}" needs a namespace.',
                hint="Give the namespace it lives in.",
            )
        return ObjectKey(meta.namespace, meta.name)


class _Named(Struct):
    name: str = ""
    namespace: str = ""
