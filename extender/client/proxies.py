"""Which proxy leads to a server, as HTTPS_PROXY, HTTP_PROXY and NO_PROXY say and Go reads them."""

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit


def proxy_for(server: str, environ: Mapping[str, str]) -> str:
    """The URL of the proxy for *server*, empty for none. Source: Go's golang.org/x/net/http/httpproxy.

    This machine is always reached directly; so is what NO_PROXY lists: `*`, host names with or without a leading dot
    (subdomains included), addresses, networks such as `10.0.0.0/8`, each with a port or without.
    """
    parts = urlsplit(server)
    host = (parts.hostname or "").lower()
    proxy = _either(environ, f"{parts.scheme}_proxy")
    if not host or not proxy or host == "localhost":
        return ""
    address = _address(host)
    if address is not None and address.is_loopback:
        return ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    listed = [entry.strip().lower() for entry in _either(environ, "no_proxy").split(",")]
    if any(_matches(entry, host, address, port) for entry in listed if entry):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _either(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name.upper()) or environ.get(name, "")


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _matches(entry: str, host: str, address: IPv4Address | IPv6Address | None, port: int) -> bool:
    if entry == "*":
        return True
    if address is not None and "/" in entry:
        try:
            return address in ip_network(entry, strict=False)
        except ValueError:
            return False
    name, colon, wanted = entry.rpartition(":")
    if colon and wanted.isdigit() and (":" not in name or name.endswith("]")):
        if int(wanted) != port:
            return False
        entry = name
    entry = entry.strip("[]")
    if address is not None:
        return _address(entry) == address
    name = entry.removeprefix("*").removeprefix(".")
    return host.endswith(f".{name}") or (host == name and not entry.startswith((".", "*")))
