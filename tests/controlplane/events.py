"""Events as the API server has them: what was written about whom."""

import json
from collections.abc import Set as AbstractSet
from time import monotonic
from typing import Final

from tests.controlplane.api import Api, LateError, Thing, key

_ROOT: Final = "/apis/events.k8s.io/v1"
_PATIENCE: Final = 60.0


def written(api: Api) -> list[Thing]:
    """All events."""
    return list(json.loads(api.call("GET", f"{_ROOT}/events"))["items"])


def notes(api: Api, reason: str) -> dict[str, list[str]]:
    """The notes of the events about pods that have this reason, by the pod's key, oldest first."""
    found: dict[str, list[str]] = {}
    for event in sorted(written(api), key=lambda event: str(event["eventTime"])):
        if event["regarding"]["kind"] == "Pod" and event["reason"] == reason:
            found.setdefault(key({"metadata": event["regarding"]}), []).append(event["note"])
    return found


def wait_for(api: Api, reason: str, pods: AbstractSet[str]) -> dict[str, list[str]]:
    """The notes, once there is one about each of *pods*; events are written beside everything else.

    Raises:
        LateError: not all came.
    """
    until = monotonic() + _PATIENCE
    while True:
        found = notes(api, reason)
        if pods <= found.keys():
            return found
        if monotonic() > until:
            raise LateError(f"no event {reason} about {sorted(pods - found.keys())[:5]}")


def forget(api: Api) -> None:
    """Deletes all events."""
    for namespace in {event["metadata"]["namespace"] for event in written(api)}:
        api.call("DELETE", f"{_ROOT}/namespaces/{namespace}/events")
