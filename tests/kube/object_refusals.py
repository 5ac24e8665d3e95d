"""Objects that a cluster refuses, each with what is wrong about it and the words of the refusal."""

from typing import Any

_MOMENT = r"'^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$'"

# Each changes the spec of a good DevServer; None takes a field away.
SERVERS: dict[str, tuple[dict[str, Any], str]] = {
    "no flavor": ({"flavor": None}, "spec.flavor: Required value"),
    "an empty flavor": (
        {"flavor": ""},
        'spec.flavor: Invalid value: "": spec.flavor in body should be at least 1 chars long',
    ),
    "a flavor with a capital": (
        {"flavor": "CPU-small"},
        "spec.flavor: Invalid value: \"CPU-small\": spec.flavor in body should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'",
    ),
    "a flavor with a space": (
        {"flavor": "cpu small"},
        "spec.flavor: Invalid value: \"cpu small\": spec.flavor in body should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'",
    ),
    "a flavor that is a number": (
        {"flavor": 3},
        'spec.flavor: Invalid value: "integer": spec.flavor in body must be of type string: "integer"',
    ),
    "an image with a space": (
        {"image": "py torch"},
        "spec.image: Invalid value: \"py torch\": spec.image in body should match '^[^\\s]+$'",
    ),
    "an empty image": (
        {"image": ""},
        'spec.image: Invalid value: "": spec.image in body should be at least 1 chars long',
    ),
    "a mode nobody knows": (
        {"mode": "cluster"},
        'spec.mode: Unsupported value: "cluster": supported values: "standalone", "distributed"',
    ),
    "distributed without its settings": (
        {"mode": "distributed"},
        "spec: Invalid value: distributed belongs to mode: distributed, and that mode needs it",
    ),
    "settings of distributed without the mode": (
        {"distributed": {"worldSize": 4}},
        "spec: Invalid value: distributed belongs to mode: distributed, and that mode needs it",
    ),
    "no world size": (
        {"mode": "distributed", "distributed": {}},
        "spec.distributed.worldSize: Required value",
    ),
    "a world of nobody": (
        {"mode": "distributed", "distributed": {"worldSize": 0}},
        "spec.distributed.worldSize: Invalid value: 0: spec.distributed.worldSize in body should be greater than or equal to 1",
    ),
    "a world too large": (
        {"mode": "distributed", "distributed": {"worldSize": 5000}},
        "spec.distributed.worldSize: Invalid value: 5000: spec.distributed.worldSize in body should be less than or equal to 4096",
    ),
    "an uneven world": (
        {"mode": "distributed", "distributed": {"worldSize": 5, "nprocsPerNode": 2}},
        "spec.distributed: Invalid value: worldSize must be a multiple of nprocsPerNode, so that every node runs the same number of processes",
    ),
    "a backend nobody knows": (
        {"mode": "distributed", "distributed": {"worldSize": 2, "backend": "tcp"}},
        'spec.distributed.backend: Unsupported value: "tcp": supported values: "nccl", "gloo", "mpi"',
    ),
    "a port outside the firewall's": (
        {"mode": "distributed", "distributed": {"worldSize": 2, "port": 80}},
        "spec.distributed.port: Invalid value: 80: spec.distributed.port in body should be greater than or equal to 29500",
    ),
    "a home of no size": (
        {"persistentHomeSize": "0Gi"},
        'spec.persistentHomeSize: Invalid value: "0Gi": write a size as a whole number with its unit, such as 100Gi',
    ),
    "a home of half a gigabyte": (
        {"persistentHomeSize": "0.5Gi"},
        'spec.persistentHomeSize: Invalid value: "0.5Gi": write a size as a whole number with its unit, such as 100Gi',
    ),
    "a home in words": (
        {"persistentHomeSize": "large"},
        'spec.persistentHomeSize: Invalid value: "large": write a size as a whole number with its unit, such as 100Gi',
    ),
    "a home that is a number": (
        {"persistentHomeSize": 100},
        'spec.persistentHomeSize: Invalid value: "integer": spec.persistentHomeSize in body must be of type string: "integer"',
    ),
    "a retention in words": (
        {"home": {"retention": "forever"}},
        'spec.home.retention: Invalid value: "forever": write a length of time such as 30m, 2h30m or 1d',
    ),
    "a class with a slash": (
        {"home": {"storageClass": "fast/ssd"}},
        "spec.home.storageClass: Invalid value: \"fast/ssd\": spec.home.storageClass in body should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'",
    ),
    "a claim with an underscore": (
        {"sharedVolumeClaimName": "team_data"},
        "spec.sharedVolumeClaimName: Invalid value: \"team_data\": spec.sharedVolumeClaimName in body should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'",
    ),
    "a volume without a path": (
        {"volumes": [{"claimName": "data"}]},
        "spec.volumes[0].mountPath: Required value",
    ),
    "a volume at no absolute path": (
        {"volumes": [{"claimName": "data", "mountPath": "data"}]},
        "spec.volumes[0].mountPath: Invalid value: \"data\": spec.volumes[0].mountPath in body should match '^/[^:]*$'",
    ),
    "two volumes at one path": (
        {"volumes": [{"claimName": "a", "mountPath": "/data"}, {"claimName": "b", "mountPath": "/data"}]},
        'spec.volumes[1]: Duplicate value: {"mountPath":"/data"}',
    ),
    "a volume over the home": (
        {"volumes": [{"claimName": "data", "mountPath": "/home/dev/"}]},
        "spec.volumes[0]: Invalid value: /, /home/dev, /dev/shm and /opt/devserver are the server's own; mount the claim beside or below the home",
    ),
    "a volume over everything": (
        {"volumes": [{"claimName": "data", "mountPath": "/"}]},
        "spec.volumes[0]: Invalid value: /, /home/dev, /dev/shm and /opt/devserver are the server's own; mount the claim beside or below the home",
    ),
    "a volume over the server's tools": (
        {"volumes": [{"claimName": "data", "mountPath": "/opt/devserver/bin"}]},
        "spec.volumes[0]: Invalid value: /, /home/dev, /dev/shm and /opt/devserver are the server's own; mount the claim beside or below the home",
    ),
    "a volume at a path that turns back": (
        {"volumes": [{"claimName": "data", "mountPath": "/data/../home/dev"}]},
        "spec.volumes[0]: Invalid value: /, /home/dev, /dev/shm and /opt/devserver are the server's own; mount the claim beside or below the home",
    ),
    "a volume over the shared one": (
        {"sharedVolumeClaimName": "team", "volumes": [{"claimName": "data", "mountPath": "/shared"}]},
        "spec: Invalid value: /shared is where sharedVolumeClaimName is mounted; mount the other claim elsewhere",
    ),
    "a port that is called ssh": (
        {"ports": [{"name": "ssh", "port": 2022}]},
        "spec: Invalid value: port 22 and the name ssh are the server's own while enableSSH is true",
    ),
    "the port of ssh": (
        {"ports": [{"name": "login", "port": 22}]},
        "spec: Invalid value: port 22 and the name ssh are the server's own while enableSSH is true",
    ),
    "one port of two names": (
        {"ports": [{"name": "web", "port": 80}, {"name": "www", "port": 80}]},
        "spec: Invalid value: each port is listed once, under one name",
    ),
    "a port of zero": (
        {"ports": [{"name": "web", "port": 0}]},
        "spec.ports[0].port: Invalid value: 0: spec.ports[0].port in body should be greater than or equal to 1",
    ),
    "a port too high": (
        {"ports": [{"name": "web", "port": 70000}]},
        "spec.ports[0].port: Invalid value: 70000: spec.ports[0].port in body should be less than or equal to 65535",
    ),
    "a port without a name": ({"ports": [{"port": 80}]}, "spec.ports[0].name: Required value"),
    "a port called by its number": (
        {"ports": [{"name": "8080", "port": 8080}]},
        'spec.ports[0].name: Invalid value: "8080": the name of a port has a letter in it, and no two hyphens side by side',
    ),
    "a port with two hyphens": (
        {"ports": [{"name": "tensor--board", "port": 6006}]},
        'spec.ports[0].name: Invalid value: "tensor--board": the name of a port has a letter in it, and no two hyphens side by side',
    ),
    "two ports of one name": (
        {"ports": [{"name": "web", "port": 80}, {"name": "web", "port": 81}]},
        'spec.ports[1]: Duplicate value: {"name":"web"}',
    ),
    "a port with a long name": (
        {"ports": [{"name": "a-name-far-too-long", "port": 80}]},
        "spec.ports[0].name: Too long: may not be more than 15 bytes",
    ),
    "a private key": (
        {"ssh": {"publicKeys": ["-----BEGIN OPENSSH PRIVATE KEY-----"]}},
        'spec.ssh.publicKeys[0]: Invalid value: "-----BEGIN OPENSSH PRIVATE KEY-----": write a public key as one line of an .pub file',
    ),
    "a queue with a dot": (
        {"queue": {"name": "gpu.queue"}},
        "spec.queue.name: Invalid value: \"gpu.queue\": spec.queue.name in body should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'",
    ),
    "a queue without a name": ({"queue": {}}, "spec.queue.name: Required value"),
    "an idle timeout of a second": (
        {"lifecycle": {"idleTimeout": 1}},
        "spec.lifecycle.idleTimeout: Invalid value: 1: spec.lifecycle.idleTimeout in body should be greater than or equal to 60",
    ),
    "an idle timeout in words": (
        {"lifecycle": {"idleTimeout": "1h"}},
        'spec.lifecycle.idleTimeout: Invalid value: "string": spec.lifecycle.idleTimeout in body must be of type integer: "string"',
    ),
    "both ends": (
        {"lifecycle": {"timeToLive": "4h", "expirationTime": "2030-01-01T00:00:00Z"}},
        "spec.lifecycle: Invalid value: give timeToLive or expirationTime, not both: they are two ways to say one deadline",
    ),
    "a time to live in words": (
        {"lifecycle": {"timeToLive": "a while"}},
        'spec.lifecycle.timeToLive: Invalid value: "a while": write a length of time such as 30m, 2h30m or 1d',
    ),
    "a time to live turned around": (
        {"lifecycle": {"timeToLive": "30m2h"}},
        'spec.lifecycle.timeToLive: Invalid value: "30m2h": write a length of time such as 30m, 2h30m or 1d',
    ),
    "an end in words": (
        {"lifecycle": {"expirationTime": "tomorrow"}},
        f'spec.lifecycle.expirationTime: Invalid value: "tomorrow": spec.lifecycle.expirationTime in body should match {_MOMENT}, spec.lifecycle.expirationTime: Invalid value: "tomorrow": spec.lifecycle.expirationTime in body must be of type date-time: "tomorrow"',
    ),
    "an end a day off every clock": (
        {"lifecycle": {"expirationTime": "2030-01-01T10:00:00+24:00"}},
        f'spec.lifecycle.expirationTime: Invalid value: "2030-01-01T10:00:00+24:00": spec.lifecycle.expirationTime in body should match {_MOMENT}',
    ),
    "an end with a comma": (
        {"lifecycle": {"keepUntil": "2030-01-01T10:00:00,5Z"}},
        f'spec.lifecycle.keepUntil: Invalid value: "2030-01-01T10:00:00,5Z": spec.lifecycle.keepUntil in body should match {_MOMENT}',
    ),
    "an end before all years": (
        {"lifecycle": {"extendedUntil": "0000-01-01T00:00:00Z"}},
        'spec.lifecycle.extendedUntil: Invalid value: "0000-01-01T00:00:00Z": write a time between the years 2000 and 2200; what shall never be is left out',
    ),
    "an end that never comes": (
        {"lifecycle": {"expirationTime": "9999-12-31T23:59:59Z"}},
        'spec.lifecycle.expirationTime: Invalid value: "9999-12-31T23:59:59Z": write a time between the years 2000 and 2200; what shall never be is left out',
    ),
    "an end that does what": (
        {"lifecycle": {"onExpire": "Explode"}},
        'spec.lifecycle.onExpire: Unsupported value: "Explode": supported values: "Stop", "Delete"',
    ),
    "a warning in words": (
        {"lifecycle": {"warnings": ["soon"]}},
        'spec.lifecycle.warnings[0]: Invalid value: "soon": write a length of time such as 30m, 2h30m or 1d',
    ),
    "warnings without end": (
        {"lifecycle": {"warnings": ["1m", "2m", "3m", "4m", "5m", "6m", "7m", "8m", "9m", "10m", "11m"]}},
        "spec.lifecycle.warnings: Too many: 11: must have at most 10 items",
    ),
    "a schedule of nothing": (
        {"lifecycle": {"schedule": {}}},
        "spec.lifecycle.schedule: Invalid value: a schedule needs start, stop or both",
    ),
    "a schedule of four fields": (
        {"lifecycle": {"schedule": {"stop": "0 19 * *"}}},
        'spec.lifecycle.schedule.stop: Invalid value: "0 19 * *": write five fields of cron, such as 0 9 * * MON-FRI',
    ),
    "a time zone with a space": (
        {"lifecycle": {"schedule": {"stop": "0 19 * * *", "timeZone": "New York"}}},
        "spec.lifecycle.schedule.timeZone: Invalid value: \"New York\": spec.lifecycle.schedule.timeZone in body should match '^[A-Za-z0-9_+/-]+$'",
    ),
    "running in words": (
        {"running": "yes"},
        'spec.running: Invalid value: "string": spec.running in body must be of type boolean: "string"',
    ),
}

# Names of a good DevServer that its Service could not carry.
NAMES: dict[str, str] = {
    "a dotted name": "my.dev",
    "a name with no room behind it": "a" * 60,
}
UNNAMEABLE = "<nil>: Invalid value: a server's name has small letters, digits and hyphens, 59 at most: its Service is named after it"

# What was good, and the change to it that is not.
CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "another owner": (
        {"owner": "ann"},
        {"owner": "bob"},
        'spec.owner: Invalid value: "bob": owner cannot change; create a server of your own',
    ),
    "another mode": (
        {},
        {"mode": "distributed", "distributed": {"worldSize": 2}},
        'spec.mode: Invalid value: "distributed": mode cannot change; create another server',
    ),
    "a smaller home": (
        {"persistentHomeSize": "100Gi"},
        {"persistentHomeSize": "50Gi"},
        'spec.persistentHomeSize: Invalid value: "50Gi": persistentHomeSize cannot shrink: a volume only grows; create a server with a smaller home and copy',
    ),
    "another class": (
        {"home": {"storageClass": "slow"}},
        {"home": {"storageClass": "fast"}},
        'spec.home.storageClass: Invalid value: "fast": home.storageClass cannot change: a volume cannot move between classes',
    ),
}

# Each changes the spec of a good DevServerFlavor.
FLAVORS: dict[str, tuple[dict[str, Any], str]] = {
    "no resources": ({"resources": None}, "spec.resources: Required value"),
    "more asked than allowed": (
        {"resources": {"requests": {"cpu": "4"}, "limits": {"cpu": "2"}}},
        "spec.resources: Invalid value: a request cannot be larger than its limit",
    ),
    "memory in a unit of shops": (
        {"resources": {"requests": {"memory": "32GB"}}},
        "spec.resources: Invalid value: write amounts as Kubernetes does, such as 500m of cpu and 32Gi of memory",
    ),
    "a limit in plain words": (
        {"resources": {"limits": {"cpu": "eight"}}},
        "spec.resources: Invalid value: write amounts as Kubernetes does, such as 500m of cpu and 32Gi of memory",
    ),
    "half a device": (
        {"resources": {"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 2}}},
        "spec.resources: Invalid value: devices such as nvidia.com/gpu need the same number in requests and limits",
    ),
    "a device only asked for": (
        {"resources": {"requests": {"nvidia.com/gpu": 1}}},
        "spec.resources: Invalid value: devices such as nvidia.com/gpu need the same number in requests and limits",
    ),
    "a price in words": (
        {"price": {"perHour": "cheap"}},
        "spec.price.perHour: Invalid value: \"cheap\": spec.price.perHour in body should match '^[0-9]+(\\.[0-9]+)?$'",
    ),
    "a price below nothing": (
        {"price": {"perHour": "-1"}},
        "spec.price.perHour: Invalid value: \"-1\": spec.price.perHour in body should match '^[0-9]+(\\.[0-9]+)?$'",
    ),
    "a currency in small letters": (
        {"price": {"currency": "usd"}},
        "spec.price.currency: Invalid value: \"usd\": spec.price.currency in body should match '^[A-Z]{3}$'",
    ),
    "a limit in words": (
        {"limits": {"maxTTL": "long"}},
        'spec.limits.maxTTL: Invalid value: "long": write a length of time such as 30m, 2h30m or 1d',
    ),
    "fewer than no servers": (
        {"limits": {"maxPerUser": -1}},
        "spec.limits.maxPerUser: Invalid value: -1: spec.limits.maxPerUser in body should be greater than or equal to 0",
    ),
    "a toleration of nothing known": (
        {"tolerations": [{"operator": "Maybe"}]},
        "spec.tolerations[0].operator: Invalid value: \"Maybe\": spec.tolerations[0].operator in body should match '^(Exists|Equal)$'",
    ),
    "an effect nobody knows": (
        {"tolerations": [{"key": "gpu", "operator": "Exists", "effect": "Evict"}]},
        "spec.tolerations[0].effect: Invalid value: \"Evict\": spec.tolerations[0].effect in body should match '^(NoSchedule|PreferNoSchedule|NoExecute)$'",
    ),
    "shared memory in words": (
        {"shm": "some"},
        'spec.shm: Invalid value: "some": write a size as a whole number with its unit, such as 100Gi',
    ),
    "gone without a word": ({"deprecated": {}}, "spec.deprecated.message: Required value"),
}
