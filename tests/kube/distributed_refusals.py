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
_QUEUE = "spec.queue.name in body should match"
_LABEL = "spec.queue.name in body should be at least 1 chars long"
# Each changes the spec of a good distributed server.
SPECS: dict[str, tuple[dict[str, Any], str]] = {
    "a distributed server that says it is none": (
        {"mode": "standalone"},
        "distributed belongs to mode: distributed, and that mode needs it",
    ),
    "the mode alone": ({"distributed": None}, "distributed belongs to mode: distributed"),
    "a mode of another name": ({"mode": "Distributed"}, 'supported values: "standalone", "distributed"'),
    "no number of processes": ({"distributed": {"backend": "gloo"}}, "worldSize: Required value"),
    "a queue without a name": ({"queue": {}}, "spec.queue.name: Required value"),
    "a queue of an empty name": ({"queue": {"name": ""}}, _LABEL),
    "a queue in capitals": ({"queue": {"name": "Team"}}, _QUEUE),
    "a queue of another namespace": ({"queue": {"name": "dev-bob/team"}}, _QUEUE),
    "a priority class in capitals": (
        {"queue": {"name": "team", "priorityClass": "High"}},
        "spec.queue.priorityClass in body should match",
    ),
    "two claims in one place": (
        {
            "sharedVolumeClaimName": "data",
            "volumes": [{"claimName": "other", "mountPath": "/shared"}],
        },
        "/shared is where sharedVolumeClaimName is mounted; mount the other claim elsewhere",
    ),
}
WARM: dict[str, tuple[list[dict[str, Any]], str]] = {
    "fewer than none": ([{"size": -1}], "spec.warm[0].size in body should be greater than or equal to 0"),
    "no size": ([{"image": "torch:1"}], "spec.warm[0].size: Required value"),
    "too many": ([{"size": 101}], "spec.warm[0].size in body should be less than or equal to 100"),
    "an image with a space": ([{"size": 1, "image": "a b"}], "spec.warm[0].image in body should match"),
    "one image twice": (
        [{"size": 1, "image": "a"}, {"size": 2, "image": "a"}],
        "warm lists each image once, and at most one entry without an image",
    ),
    "no image twice": ([{"size": 1}, {"size": 2}], "at most one entry without an image"),
    "too many images": ([{"size": 1, "image": str(one)} for one in range(5)], "must have at most 4 items"),
}
NAME = "a" * 53
UNNAMEABLE = "the name of a distributed server has 52 letters at most: its StatefulSet is named after it"
TOPOLOGIES: dict[str, tuple[dict[str, Any], str]] = {
    "no key": ({}, "spec.topology.key: Required value"),
    "an empty key": ({"key": ""}, "spec.topology.key in body should be at least 1 chars long"),
    "a key with a space": ({"key": "my zone"}, "spec.topology.key in body should match"),
}
