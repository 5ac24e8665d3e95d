"""A kind: the API path of its objects, and the type they are decoded into."""

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

# An object as written in a file, by people and charts.
Manifest = Mapping[str, object]


class Kind(Struct, Generic[T_co], frozen=True):
    """A kind of objects, defined in one line: `Kind(DevServer, "DevServer", "devservers", "devservers.io")`.

    `type` declares only the fields that are read. `whole` states that it declares all fields. Only then may `replace`
    write back an object that was read, because undeclared fields would be lost.
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
        """The name of the resource in RBAC rules, `devservers.devservers.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def raw(self) -> "Kind[dict[str, object]]":
        """The same kind, decoded with every field."""
        return cast("Kind[dict[str, object]]", replace(self, type=dict[str, object], whole=True))

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path in the API; without a namespace, across all namespaces."""
        if namespace and not self.namespaced:
            raise Invalid(
                "kube.cluster_wide",
                f"{self.name} is cluster-wide and has no namespace.",
                hint=f'Leave out the namespace "{namespace}".',
            )
        if name and self.namespaced and not namespace:
            raise Invalid(
                "kube.namespace",
                f'{self.name} "{name}" needs a namespace.',
                hint="Give its namespace.",
            )
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        parts += ["namespaces", namespace] if namespace else []
        parts += [self.plural, *(part for part in (name, subresource) if part)]
        if any(part in {".", ".."} for part in parts):
            raise Invalid(
                "kube.name",
                f'"{name}" is not a valid name of an object.',
                hint="Use letters, digits and dashes.",
            )
        return "/" + "/".join(quote(part, safe="") for part in parts)

    def object_path(self, namespace: str, name: str, subresource: str = "") -> str:
        """The path of one object. Rejects an empty name, because that path would delete all objects of the kind."""
        if not name:
            raise Invalid("kube.name", f"The name of a {self.name} is empty.", hint="Give its name.")
        return self.path(namespace, name, subresource)

    def manifest(self, thing: object) -> dict[str, object]:
        """The body of a request: the declared fields that differ from their defaults, with kind and version."""
        body = cast("Manifest", thing if isinstance(thing, Mapping) else msgspec.to_builtins(thing))
        return {"apiVersion": self.api_version, "kind": self.name, **body}

    def whole_manifest(self, thing: object) -> dict[str, object]:
        """The body of a request that replaces the whole object."""
        if self.whole or isinstance(thing, Mapping):
            return self.manifest(cast("object", thing))
        raise Invalid(
            "kube.partial",
            f"{self.name} is read in part: writing it back whole would lose the rest.",
            hint="Use apply or patch, or read it by `kind.raw`.",
        )

    def key(self, manifest: Manifest) -> ObjectKey:
        """The namespace and name in the metadata of a manifest; the name may be left to the server."""
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
                hint="Give its namespace.",
            )
        return ObjectKey(meta.namespace, meta.name)


class _Named(Struct):
    name: str = ""
    namespace: str = ""
