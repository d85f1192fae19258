"""The two forms of events: kept as core/v1, shown as events.k8s.io/v1 to those who ask there.

Source: pkg/apis/events/v1/conversion.go.
"""

from typing import Final

from extender.sandbox.served import Object

_NAMES: Final = (
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
)
_TO_CORE: Final = dict(_NAMES)
_TO_NEW: Final = {core: new for new, core in _NAMES}


def to_core(event: Object) -> Object:
    """An event of events.k8s.io/v1 in the core's form."""
    return {**{_TO_CORE.get(name, name): value for name, value in event.items()}, "apiVersion": "v1"}


def to_new(event: Object) -> Object:
    """An event of the core in the form of events.k8s.io/v1."""
    return {**{_TO_NEW.get(name, name): value for name, value in event.items()}, "apiVersion": "events.k8s.io/v1"}


def core_path(path: str) -> str:
    """A field of the newer form, as a selector names it, in the core's."""
    first, dot, rest = path.partition(".")
    return f"{_TO_CORE.get(first, first)}{dot}{rest}"
