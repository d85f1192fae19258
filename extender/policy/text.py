"""A converted configuration as YAML: what differs from the defaults, and no more, so that a person can read it."""

from collections.abc import Mapping

from extender.config.documents import read, write
from extender.config.faults import Fault
from extender.config.model import Configuration
from extender.config.render import render

_SHOWN = ("apiVersion", "kind", "profiles", "extenders")


def text(configuration: Configuration) -> str:
    """*configuration*, whose top-level fields are at their defaults, as YAML that loads back equal."""
    document, faults = read(render(configuration).encode(), "the configuration")
    if faults or not isinstance(document, Mapping):
        raise ValueError(_told(faults))
    return write({key: _bare(document[key]) for key in _SHOWN if key in document})


def _told(faults: list[Fault]) -> str:
    return "; ".join(map(str, faults)) or "no object"


def _bare(value: object) -> object:
    """*value* without weights of 0 and without extension points at which nothing is said."""
    if isinstance(value, Mapping):
        bare = {key: _bare(inner) for key, inner in value.items()}
        return {key: inner for key, inner in bare.items() if inner != {} and not (key == "weight" and inner == 0)}
    if isinstance(value, list):
        return [_bare(element) for element in value]
    return value
