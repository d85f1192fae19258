"""Find the proxy for a server from HTTPS_PROXY, HTTP_PROXY and NO_PROXY, with Go's rules."""

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit


def find_proxy(server: str, environ: Mapping[str, str]) -> str:
    """Return the URL of the proxy for *server*; empty: no proxy.

    No proxy is used for the local host, nor for a server that matches an entry of NO_PROXY. An entry is one of:

    - `*`: all servers
    - a network, such as `10.0.0.0/8`
    - an address, with or without a port
    - a host name, with or without a port, for the host and its subdomains
    - a host name with a leading dot, with or without a port, only for its subdomains

    Source: golang.org/x/net/http/httpproxy/proxy.go, config.useProxy.
    """
    url = urlsplit(server)
    host = (url.hostname or "").lower()
    proxy = _get_variable(environ, f"{url.scheme}_proxy")
    if not host or not proxy or is_loopback(host):
        return ""
    address = _parse_address(host)
    port = url.port or (443 if url.scheme == "https" else 80)
    no_proxy_entries = [entry.strip().lower() for entry in _get_variable(environ, "no_proxy").split(",")]
    if any(_matches_no_proxy_entry(entry, host, address, port) for entry in no_proxy_entries if entry):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def is_loopback(host: str) -> bool:
    """Return whether *host* is `localhost` or a loopback address."""
    address = _parse_address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def _get_variable(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name.upper()) or environ.get(name, "")


def _parse_address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _matches_no_proxy_entry(entry: str, host: str, address: IPv4Address | IPv6Address | None, port: int) -> bool:
    if entry == "*":
        return True
    if address is not None and "/" in entry:
        try:
            return address in ip_network(entry, strict=False)
        except ValueError:
            return False
    name, colon, entry_port = entry.rpartition(":")
    if colon and entry_port.isdigit() and (":" not in name or name.endswith("]")):
        if int(entry_port) != port:
            return False
        entry = name
    entry = entry.strip("[]")
    if address is not None:
        return _parse_address(entry) == address
    domain = entry.removeprefix("*").removeprefix(".")
    return host.endswith(f".{domain}") or (host == domain and not entry.startswith((".", "*")))
