"""Events of the API server."""

import json
from collections.abc import Set as AbstractSet
from time import monotonic
from typing import Final

from tests.controlplane.api_client import ApiClient, JsonObject, WaitTimeoutError, object_key

_ROOT: Final = "/apis/events.k8s.io/v1"
_TIMEOUT: Final = 60.0


def list_events(api: ApiClient) -> list[JsonObject]:
    """Return all events."""
    return list(json.loads(api.call("GET", f"{_ROOT}/events"))["items"])


def notes_by_pod(api: ApiClient, reason: str) -> dict[str, list[str]]:
    """Return the notes of the events with *reason* about pods, by the key of the pod, oldest first."""
    notes: dict[str, list[str]] = {}
    for event in sorted(list_events(api), key=lambda event: str(event["eventTime"])):
        if event["regarding"]["kind"] == "Pod" and event["reason"] == reason:
            notes.setdefault(object_key({"metadata": event["regarding"]}), []).append(event["note"])
    return notes


def wait_for_notes(api: ApiClient, reason: str, pods: AbstractSet[str]) -> dict[str, list[str]]:
    """Wait until there is an event with *reason* about each of *pods*, and return the notes of these events.

    Raises:
        WaitTimeoutError: an event is missing.
    """
    deadline = monotonic() + _TIMEOUT
    while True:
        notes = notes_by_pod(api, reason)
        if pods <= notes.keys():
            return notes
        if monotonic() > deadline:
            raise WaitTimeoutError(f"no event {reason} about {sorted(pods - notes.keys())[:5]}")


def delete_events(api: ApiClient) -> None:
    """Delete all events."""
    for namespace in {event["metadata"]["namespace"] for event in list_events(api)}:
        api.call("DELETE", f"{_ROOT}/namespaces/{namespace}/events")
