"""Generates structural schemas of custom resources from the types that the code decodes, so that both always agree."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from msgspec import NODEFAULT, Struct, inspect, to_builtins

from neorion.keel.kube.validation import Rule, validations

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """One column of `kubectl get`. Columns with a priority above 0 show with `-o wide`."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0


@dataclass(frozen=True, slots=True)
class CustomResource:
    """The names of a custom resource, and the types of its spec and status.

    `born` are rules for new objects only, such as rules for names. Existing objects must stay changeable, or they could
    not be deleted.
    """

    group: str
    version: str
    kind: str
    plural: str
    spec: type[Struct]
    status: type[Struct]
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    columns: tuple[PrinterColumn, ...] = ()
    born: tuple[Rule, ...] = ()

    def manifest(self) -> Schema:
        """The CustomResourceDefinition to apply."""
        names: Schema = {
            "kind": self.kind,
            "listKind": f"{self.kind}List",
            "plural": self.plural,
            "singular": self.kind.lower(),
        }
        if self.short_names:
            names["shortNames"] = list(self.short_names)
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{self.plural}.{self.group}"},
            "spec": {
                "group": self.group,
                "names": names,
                "scope": "Namespaced" if self.namespaced else "Cluster",
                "versions": [
                    {
                        "name": self.version,
                        "served": True,
                        "storage": True,
                        "subresources": {"status": {}},
                        "additionalPrinterColumns": [_column(column) for column in self.columns],
                        "schema": {"openAPIV3Schema": self._root()},
                    }
                ],
            },
        }

    def _root(self) -> Schema:
        once = [
            {"rule": f"oldSelf.hasValue() || {rule}", "message": text, "optionalOldSelf": True}
            for rule, text in self.born
        ]
        return {
            "type": "object",
            "required": ["spec"],
            **({"x-kubernetes-validations": once} if once else {}),
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": {"type": "object"},
                "spec": schema_of(self.spec),
                # The server fills in defaults on every write; a status holds only what was observed.
                "status": schema_of(self.status, defaults=False),
            },
        }


def schema_of(struct: type[Struct], *, defaults: bool = True) -> Schema:
    return _write(inspect.type_info(struct), defaults=defaults)


def _column(column: PrinterColumn) -> Schema:
    schema: Schema = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return schema | {"priority": column.priority} if column.priority else schema


def _write(info: inspect.Type, *, defaults: bool) -> Schema:
    match info:
        case inspect.Metadata():
            added = cast("Schema", info.extra_json_schema or {})
            return _merged(_write(info.type, defaults=defaults), added)
        case inspect.UnionType():
            return _union(info, defaults=defaults)
        case inspect.StructType():
            return _struct(info, defaults=defaults)
        case inspect.VarTupleType() | inspect.ListType() | inspect.DictType():
            return _collection(info, defaults=defaults)
        case _:
            return _scalar(info)


def _collection(
    info: inspect.VarTupleType | inspect.ListType | inspect.DictType, *, defaults: bool
) -> Schema:
    if isinstance(info, inspect.DictType):
        schema = {"type": "object", "additionalProperties": _write(info.value_type, defaults=defaults)}
        return schema | _bounds(minProperties=info.min_length, maxProperties=info.max_length)
    schema = {"type": "array", "items": _write(info.item_type, defaults=defaults)}
    return schema | _bounds(minItems=info.min_length, maxItems=info.max_length)


def _merged(inner: Schema, added: Mapping[str, Any]) -> Schema:
    """Merges the schema of a type with that of the field: rules add up, any other value comes from the field."""
    both = inner.get("x-kubernetes-validations", []) + added.get("x-kubernetes-validations", [])
    merged = inner | dict(added)
    if both:
        merged["x-kubernetes-validations"] = both
    return merged


def _scalar(info: inspect.Type) -> Schema:
    match info:
        case inspect.StrType():
            bounds = _bounds(minLength=info.min_length, maxLength=info.max_length, pattern=info.pattern)
            return {"type": "string"} | bounds
        case inspect.IntType():
            return {"type": "integer", "format": "int64"} | _bounds(minimum=info.ge, maximum=info.le)
        case inspect.FloatType():
            return {"type": "number"} | _bounds(minimum=info.ge, maximum=info.le)
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.EnumType():
            return {"type": "string", "enum": [member.value for member in info.cls]}
        case inspect.DateTimeType():
            return {"type": "string", "format": "date-time"}
        case _:
            raise TypeError(f"{info} has no structural schema")


def _union(info: inspect.UnionType, *, defaults: bool) -> Schema:
    """The schema of a union: None is an absent field, and int with str is an int-or-string."""
    members = [member for member in info.types if not isinstance(member, inspect.NoneType)]
    if len(members) == 1:
        return _write(members[0], defaults=defaults)
    if {type(member) for member in members} == {inspect.IntType, inspect.StrType}:
        return {"x-kubernetes-int-or-string": True}
    raise TypeError(f"{info} has no structural schema")


def _struct(info: inspect.StructType, *, defaults: bool) -> Schema:
    schema: Schema = {"type": "object"}
    if text := (info.cls.__doc__ or "").strip():
        schema["description"] = " ".join(text.split())
    properties: Schema = {}
    for field in info.fields:
        properties[field.encode_name] = _write(field.type, defaults=defaults)
        default = _default(field)
        if defaults and default is not None:
            properties[field.encode_name]["default"] = default
    required = [field.encode_name for field in info.fields if field.required]
    if required:
        schema["required"] = required
    declared: tuple[Rule, ...] = getattr(info.cls, "RULES", ())
    if declared:
        schema |= validations(declared)
    return schema | {"properties": properties}


def _default(field: inspect.Field) -> object | None:
    """The default that the server fills in. An empty default only serves to decode an absent field."""
    match field.default:
        case Struct():
            return {}  # its own fields carry their defaults
        case value if value is NODEFAULT or value in (None, "", ()):
            return None
        case value:
            return cast("object", to_builtins(value))


def _bounds(**limits: object) -> Schema:
    return {key: value for key, value in limits.items() if value is not None}
