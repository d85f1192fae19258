"""URLs in expressions, parsed as Go does.

Source: apiserver/pkg/cel/library/urls.go, stringToUrl (1.36); net/url/url.go, ParseRequestURI, ParseQuery (Go 1.26).
"""

import ipaddress
import re
from typing import Final, NamedTuple
from urllib.parse import unquote, unquote_plus

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_CONTROL_CHARACTER: Final = re.compile(r"[\x00-\x1f\x7f]")
_INVALID_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_USER: Final = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*")
_HOST: Final = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=\[\]<>\"-]|[^\x00-\x7f]|%25|%[89A-Fa-f][0-9A-Fa-f])*")
_PORT: Final = re.compile(r"(?::[0-9]*)?")


class Url(NamedTuple):
    """The parts of a URL.

    Attributes:
        scheme: the scheme in lower case; empty for a path.
        host: the host with its port.
        path: the path with its escapes.
        query: the query without the question mark.
    """

    scheme: str
    host: str
    path: str
    query: str


def split_url(text: str) -> Url:
    """Split an absolute URL or an absolute path.

    Raises:
        ValueError: *text* is neither.
    """
    match = _SCHEME.fullmatch(text)
    scheme, rest = (match[1].lower(), match[2]) if match else ("", text)
    if text == "*":
        return Url("", "", "*", "")
    rest, hash_sign, fragment = rest.partition("#")
    rest, question_mark, query = rest.partition("?")
    is_absolute = bool(scheme) or rest.startswith("/")
    if not is_absolute or _CONTROL_CHARACTER.search(text) or _INVALID_ESCAPE.search(fragment):
        raise _make_error(text)
    if not rest.startswith("/"):
        return Url(scheme, "", "", query)  # such as mailto:a@b
    host = ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        user, _, host = authority.rpartition("@")
        if hash_sign and not (slash or question_mark):  # ParseRequestURI takes the fragment for a part of the host
            raise _make_error(text)
        if not (_USER.fullmatch(user) and _is_host(host)) or _INVALID_ESCAPE.search(user):
            raise _make_error(text)
        rest = slash + path
    if _INVALID_ESCAPE.search(rest):
        raise _make_error(text)
    return Url(scheme, unquote(host), rest, query)


def get_hostname(text: str) -> str:
    """Return the host of a URL without its port and without brackets."""
    name = _split_host(text)[0]
    return name[1:-1] if name.startswith("[") and name.endswith("]") else name


def get_port(text: str) -> str:
    """Return the port of a URL, which may be empty."""
    return _split_host(text)[1]


def _split_host(text: str) -> tuple[str, str]:
    host = split_url(text).host
    name, colon, port = host.rpartition(":")
    return (name, port) if colon and _PORT.fullmatch(f":{port}") else (host, "")


def parse_query(query: str) -> dict[str, list[str]]:
    """Return the values of a query by name. Invalid parts, among them those with a semicolon, are ignored."""
    values: dict[str, list[str]] = {}
    for part in query.split("&"):
        if part and ";" not in part and not _INVALID_ESCAPE.search(part):
            name, _, value = part.partition("=")
            values.setdefault(unquote_plus(name), []).append(unquote_plus(value))
    return values


def _is_host(host: str) -> bool:
    if not host.startswith("["):
        name, colon, port = host.partition(":")
        return bool(_HOST.fullmatch(name) and _PORT.fullmatch(colon + port))
    address, bracket, port = host[1:].rpartition("]")
    try:
        ipaddress.IPv6Address(unquote(address))
    except ValueError:
        return False
    return bool(bracket and _PORT.fullmatch(port))


def _make_error(text: str) -> ValueError:
    return ValueError(f'URL "{text[:64]}": want an absolute URL or an absolute path')
