"""Distributed servers that a cluster refuses, each with a part of the refusal."""

from typing import Any

_SETTINGS = (
    "ncclSettings holds variables of the communication libraries, such as NCCL_DEBUG or GLOO_SOCKET_IFNAME"
)
_LEAST = "minNodes cannot be larger than the number of nodes, which is worldSize divided by nprocsPerNode"
_EVEN = "worldSize must be a multiple of nprocsPerNode, so that every node runs the same number of processes"
_GE, _LE = "should be greater than or equal to", "should be less than or equal to"

# Each changes the field `distributed` of a good server with four processes.
FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "processes below zero": ({"worldSize": -1}, f"spec.distributed.worldSize in body {_GE} 1"),
    "processes as text": ({"worldSize": "4"}, 'must be of type integer: "string"'),
    "half a process": ({"worldSize": 1.5}, "must be of type integer"),
    "no process on a node": ({"nprocsPerNode": 0}, f"spec.distributed.nprocsPerNode in body {_GE} 1"),
    "too many processes on a node": (
        {"nprocsPerNode": 65},
        f"spec.distributed.nprocsPerNode in body {_LE} 64",
    ),
    "an uneven number of processes": ({"nprocsPerNode": 3}, _EVEN),
    "more processes on a node than there are": ({"nprocsPerNode": 8}, _EVEN),
    "an elastic server without a node": ({"minNodes": 0}, f"spec.distributed.minNodes in body {_GE} 1"),
    "a minimum above the maximum": ({"minNodes": 5}, _LEAST),
    "a minimum in processes": ({"nprocsPerNode": 2, "minNodes": 3}, _LEAST),
    "an unknown backend": ({"backend": "NCCL"}, 'supported values: "nccl", "gloo", "mpi"'),
    "no backend": ({"backend": ""}, 'supported values: "nccl", "gloo", "mpi"'),
    "restarts below zero": ({"maxRestarts": -1}, f"spec.distributed.maxRestarts in body {_GE} 0"),
    "restarts for ever": ({"maxRestarts": 1001}, f"spec.distributed.maxRestarts in body {_LE} 1000"),
    "a port before the range": ({"port": 29499}, f"spec.distributed.port in body {_GE} 29500"),
    "a port behind the range": ({"port": 29511}, f"spec.distributed.port in body {_LE} 29510"),
    "homes of another kind": ({"homes": "None"}, 'supported values: "PerRank", "Shared"'),
    "the rank of torchrun": ({"ncclSettings": {"RANK": "0"}}, _SETTINGS),
    "the rendezvous of torchrun": ({"ncclSettings": {"PET_NNODES": "9"}}, _SETTINGS),
    "a library before all others": ({"ncclSettings": {"LD_PRELOAD": "/lib/a.so"}}, _SETTINGS),
    "a setting in small letters": ({"ncclSettings": {"nccl_debug": "INFO"}}, _SETTINGS),
    "a setting with a space": ({"ncclSettings": {"NCCL_DEBUG ": "INFO"}}, _SETTINGS),
    "a setting without a name": ({"ncclSettings": {"NCCL_": "1"}}, _SETTINGS),
    "a setting that is a number": ({"ncclSettings": {"NCCL_DEBUG": 1}}, 'must be of type string: "integer"'),
    "a setting too long": ({"ncclSettings": {"NCCL_DEBUG": "x" * 1025}}, "Too long"),
    "too many settings": (
        {"ncclSettings": {f"NCCL_A{number}": "1" for number in range(65)}},
        "must have at most 64 items",
    ),
    "settings as a list": ({"ncclSettings": ["NCCL_DEBUG"]}, 'must be of type object: "array"'),
}
# Changes of a server with four processes that are refused.
CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "one home instead of four": (
        {"homes": "Shared"},
        "distributed.homes cannot change; create another server",
    ),
    "an odd number of processes": ({"worldSize": 5, "nprocsPerNode": 2}, _EVEN),
    "another mode": ({}, "mode cannot change; create another server"),
}
NAME = "a" * 53
UNNAMEABLE = "the name of a distributed server has 52 letters at most: its StatefulSet is named after it"
TOPOLOGIES: dict[str, tuple[dict[str, Any], str]] = {
    "no key": ({}, "spec.topology.key: Required value"),
    "an empty key": ({"key": ""}, "spec.topology.key in body should be at least 1 chars long"),
    "a key with a space": ({"key": "my zone"}, "spec.topology.key in body should match"),
}
