"""The operations of a workload follow each other at their distances, and nothing is left after a history."""

import json
import ssl

import httpx2
import pytest

from tests.controlplane.api_client import ApiClient
from tests.history.cluster_actors import delete_all, postpone


@pytest.mark.parametrize(
    ("planned", "now", "expected"),
    [
        (2.0, 102.01, 100.0),  # at its time
        (2.0, 102.75, 100.0),  # late by 0.75 s: the next operations follow at once
        (2.0, 117.0, 114.0),  # late by 15 s: the rest is moved by 14 s, and 1 s follows at once
    ],
)
def test_a_workload_is_postponed_so_that_no_operation_is_late_by_more_than_a_second(
    planned: float, now: float, expected: float
) -> None:
    assert postpone(100.0, planned, now) == expected


def test_a_volume_that_was_replaced_after_the_recording_is_deleted() -> None:
    """It would be in the next history, whose recording does not show how it was created."""
    deleted: list[str] = []

    def respond(request: httpx2.Request) -> httpx2.Response:
        if request.method == "DELETE":
            deleted.append(request.url.path)
        is_list = request.method == "GET" and request.url.path == "/api/v1/persistentvolumes"
        items = [{"metadata": {"name": "disk-0-0.1"}}] if is_list else []
        return httpx2.Response(200, text=json.dumps({"kind": "List", "items": items}))

    with ApiClient("https://127.0.0.1:1", "token", ssl.create_default_context()) as api:
        api._http = httpx2.Client(base_url="https://127.0.0.1:1", transport=httpx2.MockTransport(respond))
        delete_all(api)
    assert deleted == ["/api/v1/persistentvolumes/disk-0-0.1"]
