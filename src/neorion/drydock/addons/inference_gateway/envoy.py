"""Envoy's configuration: listeners whose routes ask a pool's endpoint picker, and clusters that go where it says."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from neorion.drydock.addons.inference_gateway.decide import PoolBackend, ServedPort, ServedRoute

Json = dict[str, Any]

LISTENERS: Final = "listeners.json"
CLUSTERS: Final = "clusters.json"
# A picker answers by this header.
_CHOSEN: Final = "x-gateway-destination-endpoint"
_TYPES: Final = "type.googleapis.com"
_EXT_PROC: Final = "envoy.filters.http.ext_proc"
_HTTP_OPTIONS: Final = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
# A picker reads the whole request before it chooses; it may change headers and body of both directions.
_PROCESSING: Final = {
    "request_header_mode": "SEND",
    "request_body_mode": "FULL_DUPLEX_STREAMED",
    "request_trailer_mode": "SEND",
    "response_header_mode": "SEND",
    "response_body_mode": "FULL_DUPLEX_STREAMED",
    "response_trailer_mode": "SEND",
}
_NO_PROCESSING: Final = {
    "request_header_mode": "SKIP",
    "response_header_mode": "SKIP",
    "request_trailer_mode": "SKIP",
    "response_trailer_mode": "SKIP",
}
_PICK_TIMEOUT: Final = "10s"
_CONNECT_TIMEOUT: Final = "2s"


def bootstrap(folder: Path) -> Json:
    """Envoy reads listeners and clusters from the folder, again whenever one of the files is replaced."""
    watched = {"watched_directory": {"path": str(folder)}}
    sources = {
        "lds_config": {"path_config_source": {"path": str(folder / LISTENERS), **watched}},
        "cds_config": {"path_config_source": {"path": str(folder / CLUSTERS), **watched}},
    }
    return {"node": {"id": "drydock", "cluster": "drydock"}, "dynamic_resources": sources}


def listeners(address: str, ports: Iterable[ServedPort], pools: Iterable[PoolBackend]) -> Json:
    by_name = {pool.name: pool for pool in pools}
    return {"resources": [_listener(address, port, by_name) for port in ports]}


def clusters(pools: Iterable[PoolBackend]) -> Json:
    return {"resources": [each for pool in pools for each in (_servers(pool), _picker(pool))]}


def _listener(address: str, port: ServedPort, pools: dict[str, PoolBackend]) -> Json:
    by_host: dict[str, list[ServedRoute]] = {}
    for route in port.routes:
        for host in route.hosts:
            by_host.setdefault(host, []).append(route)
    hosts = [
        {
            "name": host,
            "domains": [host] if host == "*" else [host, f"{host}:*"],
            "routes": [_route(route, pools) for route in routes],
        }
        for host, routes in sorted(by_host.items())
    ]
    manager = _typed(
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix=f"port_{port.port}",
        route_config={"name": str(port.port), "virtual_hosts": hosts},
        http_filters=[
            {
                "name": _EXT_PROC,
                "typed_config": _typed(
                    "envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor",
                    # Each route names the picker that it asks.
                    grpc_service=_asks("none"),
                    processing_mode=_NO_PROCESSING,
                ),
            },
            {
                "name": "envoy.filters.http.router",
                "typed_config": _typed("envoy.extensions.filters.http.router.v3.Router"),
            },
        ],
    )
    chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
    return _typed(
        "envoy.config.listener.v3.Listener",
        name=str(port.port),
        address=_address(f"{address}:{port.port}"),
        filter_chains=[chain],
    )


def _route(route: ServedRoute, pools: dict[str, PoolBackend]) -> Json:
    weighted = [
        {"name": name, "weight": weight, "typed_per_filter_config": {_EXT_PROC: _picks(pools[name])}}
        for name, weight in route.weights
    ]
    return {
        "match": {"prefix": "/"},
        "route": {"weighted_clusters": {"clusters": weighted}, "timeout": "0s"},
    }


def _picks(pool: PoolBackend) -> Json:
    overrides = {
        "grpc_service": _asks(_picker_name(pool)),
        "processing_mode": _PROCESSING,
        "failure_mode_allow": pool.fails_open,
    }
    return _typed("envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute", overrides=overrides)


def _asks(cluster: str) -> Json:
    return {"envoy_grpc": {"cluster_name": cluster, "authority": cluster}, "timeout": _PICK_TIMEOUT}


def _servers(pool: PoolBackend) -> Json:
    """The server that the picker chose, if it is one of the pool's; without a choice each in turn."""
    policy = "envoy.load_balancing_policies"
    extensions = "envoy.extensions.load_balancing_policies"
    in_turn = {
        "name": f"{policy}.round_robin",
        "typed_config": _typed(f"{extensions}.round_robin.v3.RoundRobin"),
    }
    chosen = _typed(
        f"{extensions}.override_host.v3.OverrideHost",
        override_host_sources=[{"header": _CHOSEN}],
        fallback_policy={"policies": [{"typed_extension_config": in_turn}]},
    )
    balancing = {"name": f"{policy}.override_host", "typed_config": chosen}
    return _typed(
        "envoy.config.cluster.v3.Cluster",
        name=pool.name,
        connect_timeout=_CONNECT_TIMEOUT,
        load_assignment=_endpoints(pool.name, pool.servers),
        load_balancing_policy={"policies": [{"typed_extension_config": balancing}]},
    )


def _picker(pool: PoolBackend) -> Json:
    """Pickers speak HTTP/2 over TLS, with certificates that they sign themselves."""
    tls = _typed(
        "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        common_tls_context={"alpn_protocols": ["h2"]},
    )
    http2 = _typed(_HTTP_OPTIONS, explicit_http_config={"http2_protocol_options": {}})
    name = _picker_name(pool)
    return _typed(
        "envoy.config.cluster.v3.Cluster",
        name=name,
        connect_timeout=_CONNECT_TIMEOUT,
        load_assignment=_endpoints(name, pool.pickers),
        transport_socket={"name": "envoy.transport_sockets.tls", "typed_config": tls},
        typed_extension_protocol_options={_HTTP_OPTIONS: http2},
    )


def _picker_name(pool: PoolBackend) -> str:
    return f"picker/{pool.name}"


def _endpoints(name: str, addresses: Iterable[str]) -> Json:
    endpoints = [{"endpoint": {"address": _address(each)}} for each in addresses]
    return {"cluster_name": name, "endpoints": [{"lb_endpoints": endpoints}]}


def _address(address: str) -> Json:
    host, _, port = address.rpartition(":")
    return {"socket_address": {"address": host, "port_value": int(port)}}


def _typed(message: str, /, **fields: object) -> Json:
    return {"@type": f"{_TYPES}/{message}", **fields}
