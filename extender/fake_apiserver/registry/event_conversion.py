"""Convert events between events.k8s.io/v1 and core/v1. Events are stored in core/v1.

Source: pkg/apis/events/v1/conversion.go, Convert_v1_Event_To_core_Event (1.36).
"""

from typing import Final

from extender.fake_apiserver.registry.resources import Object

_FIELD_NAMES: Final = (
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
)
_TO_CORE: Final = dict(_FIELD_NAMES)
_TO_EVENTS_V1: Final = {core_name: events_v1_name for events_v1_name, core_name in _FIELD_NAMES}


def to_core_event(event: Object) -> Object:
    """Convert an event of events.k8s.io/v1 to core/v1."""
    return {**{_TO_CORE.get(name, name): value for name, value in event.items()}, "apiVersion": "v1"}


def to_events_v1_event(event: Object) -> Object:
    """Convert an event of core/v1 to events.k8s.io/v1."""
    return {**{_TO_EVENTS_V1.get(name, name): value for name, value in event.items()}, "apiVersion": "events.k8s.io/v1"}


def to_core_field_path(path: str) -> str:
    """Convert the field path of a field selector from events.k8s.io/v1 to core/v1."""
    first, dot, remainder = path.partition(".")
    return f"{_TO_CORE.get(first, first)}{dot}{remainder}"
