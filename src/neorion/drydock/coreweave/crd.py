"""The NodePool as CoreWeave defines it: its fields, and what the API server refuses by itself."""

from typing import Any, Final

GROUP: Final = "compute.coreweave.com"
VERSION: Final = "v1alpha1"

_COUNT: Final = {"type": "integer", "minimum": 0}
_WORDS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
_FREE: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_IS_RACK: Final = "self.instanceType.startsWith('gb200-4x') || self.instanceType.startsWith('gb300-4x')"
# Below CoreWeave's own domains.
_RESERVED: Final = (
    "self.all(key, !['coreweave.cloud', 'coreweave.com'].exists("
    "domain, key.split('/')[0] == domain || key.split('/')[0].endsWith('.' + domain)))"
)
_NODE_LABELS: Final = {
    **_WORDS,
    "maxProperties": 64,
    "x-kubernetes-validations": [
        {"rule": _RESERVED, "message": "labels below coreweave.cloud and coreweave.com are reserved"}
    ],
}
# What the makers' documentation says of the fields, as the rules that a server can check.
_RULES: Final = (
    ("self.instanceType == oldSelf.instanceType", "instanceType is immutable"),
    ("self.computeClass == oldSelf.computeClass", "computeClass is immutable"),
    (
        "has(self.targetNodes) != has(self.targetRacks)",
        "exactly one of targetNodes and targetRacks must be given",
    ),
    (f"!({_IS_RACK}) || !self.autoscaling", "autoscaling is not supported on rack types"),
    (
        f"!({_IS_RACK}) || !has(self.targetNodes) || self.targetNodes % 18 == 0",
        "targetNodes of a rack type must be a multiple of 18",
    ),
    (
        "self.computeClass != 'spot' || !self.instanceType.matches('^(gd-1xgh200|gb200|gb300)')",
        "spot is not offered for this instanceType",
    ),
    ("!(has(self.image) && has(self.gpu))", "image and gpu are mutually exclusive"),
    ("!(has(self.targetRacks) && self.autoscaling)", "autoscaling is not supported with targetRacks"),
    (
        "!has(self.minNodes) || !has(self.maxNodes) || self.minNodes <= self.maxNodes",
        "minNodes exceeds maxNodes",
    ),
)
_TAINT: Final = {
    "type": "object",
    "required": ["key", "effect"],
    "properties": {
        "key": {"type": "string", "minLength": 1},
        "value": {"type": "string"},
        "effect": {"type": "string", "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
    },
}
_SPEC: Final = {
    "type": "object",
    "required": ["instanceType"],
    "properties": {
        "computeClass": {"type": "string", "enum": ["default", "spot"], "default": "default"},
        "instanceType": {"type": "string", "minLength": 1},
        "targetNodes": _COUNT,
        "targetRacks": _COUNT,
        "minNodes": _COUNT,
        "maxNodes": _COUNT,
        "autoscaling": {"type": "boolean", "default": False},
        "nodeLabels": _NODE_LABELS,
        "nodeAnnotations": _WORDS,
        "nodeTaints": {"type": "array", "items": _TAINT, "maxItems": 50},
        "image": _FREE,
        "gpu": _FREE,
        "lifecycle": {
            "type": "object",
            "properties": {
                "scaleDownStrategy": {
                    "type": "string",
                    "enum": ["IdleOnly", "PreferIdle"],
                    "default": "IdleOnly",
                }
            },
        },
    },
    "x-kubernetes-validations": [{"rule": rule, "message": words} for rule, words in _RULES],
}
_CONDITION: Final = {
    "type": "object",
    "required": ["type", "status"],
    "properties": {
        **{
            name: {"type": "string"} for name in ("type", "status", "reason", "message", "lastTransitionTime")
        },
        "observedGeneration": {"type": "integer"},
    },
}
_STATUS: Final = {
    "type": "object",
    "properties": {
        **dict.fromkeys(
            ("currentNodes", "inProgress", "inProgressNodes", "queuedNodes", "prefillNodes"), _COUNT
        ),
        "capacity": {"type": "string"},
        "quota": {"type": "string"},
        "conditions": {
            "type": "array",
            "items": _CONDITION,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    },
}
_COLUMNS: Final = (
    ("Instance Type", "string", ".spec.instanceType"),
    ("Target", "integer", ".spec.targetNodes"),
    ("Queued", "integer", ".status.queuedNodes"),
    ("InProgress", "integer", ".status.inProgress"),
    ("Current", "integer", ".status.currentNodes"),
    ("Prefill", "integer", ".status.prefillNodes"),
    ("Validated", "string", '.status.conditions[?(@.type=="Validated")].status'),
    ("Capacity", "string", ".status.capacity"),
    ("Quota", "string", ".status.quota"),
    ("Age", "date", ".metadata.creationTimestamp"),
)


def definition() -> dict[str, Any]:
    """The object that `kubectl get crd nodepools.compute.coreweave.com` shows."""
    schema = {"type": "object", "required": ["spec"], "properties": {"spec": _SPEC, "status": _STATUS}}
    version: dict[str, Any] = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": name, "type": kind, "jsonPath": path} for name, kind, path in _COLUMNS
        ],
    }
    names = {"kind": "NodePool", "listKind": "NodePoolList", "plural": "nodepools", "singular": "nodepool"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"nodepools.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Cluster", "names": names, "versions": [version]},
    }
