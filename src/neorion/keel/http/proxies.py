"""Selects the proxy for a server from the environment, as kubectl and curl do."""

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit


def proxy_from(environ: Mapping[str, str], server: str, fallback: str = "") -> str:
    """HTTPS_PROXY or HTTP_PROXY, by the server's scheme. Empty for a server on this machine or in NO_PROXY.

    `fallback` is another variable, read if that of the scheme is not set.
    """
    place = urlsplit(server)
    host = (place.hostname or "").rstrip(".")
    proxy = _variable(environ, f"{place.scheme}_proxy") or (_variable(environ, fallback) if fallback else "")
    if not proxy or _is_spared(host, place.port or (443 if place.scheme == "https" else 80), environ):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _variable(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name.upper()) or environ.get(name, "")


def _is_spared(host: str, port: int, environ: Mapping[str, str]) -> bool:
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    entries = (entry.strip().lower() for entry in _variable(environ, "no_proxy").split(","))
    return any(_matches(entry, host, port, address) for entry in entries if entry)


def _matches(entry: str, host: str, port: int, address: IPv4Address | IPv6Address | None) -> bool:
    """Matches one entry of NO_PROXY: everything, a network, an address, or a name; the last two may have a port."""
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return address is not None and address in ip_network(entry, strict=False)
        except ValueError:
            return False
    name, colon, wanted_port = entry.rpartition(":")
    if not colon or _address(entry) is not None:
        name, wanted_port = entry, ""
    if wanted_port and wanted_port != str(port):
        return False
    if address is not None:
        return _address(name.strip("[]")) == address
    # A name matches itself and its subdomains; with a leading dot only the subdomains.
    name = name.removeprefix("*")
    return host.endswith(name if name.startswith(".") else f".{name}") or host == name


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
