"""A small API client: create, list, patch, delete, and wait for a condition with a watch."""

import json
import math
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any, Final, Self

import httpx2

from tests.controlplane.resources import ALL_RESOURCES

JsonObject = dict[str, Any]
"""An object as parsed JSON."""

UnreachableError = httpx2.TransportError
"""The server cannot be reached."""

_TIMEOUT: Final = 30.0
_WAIT_TIMEOUT: Final = 60.0  # for programs that share two cores with other control planes
_MERGE_PATCH_HEADERS: Final = {"Content-Type": "application/merge-patch+json"}


class ApiStatusError(Exception):
    """The API server responded with an error status.

    Attributes:
        status: the HTTP status code.
    """

    def __init__(self, request: str, status: int, text: str) -> None:
        super().__init__(f"{request}: {status} {text}")
        self.status = status


class WaitTimeoutError(Exception):
    """A condition was not met in time."""


class ApiClient:
    """A client of one API server with the token of one user.

    Args:
        url: the address of the API server.
        token: a bearer token.
        tls_context: verifies the certificate of the API server.
    """

    def __init__(self, url: str, token: str, tls_context: ssl.SSLContext) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx2.Client(base_url=url, headers=headers, verify=tls_context, timeout=_TIMEOUT, trust_env=False)
        self._created: list[JsonObject] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def is_ready(self) -> bool:
        """Return whether /readyz succeeds."""
        return self._http.get("/readyz").status_code == httpx2.codes.OK

    def call(self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> bytes:
        """Send a request and return the body of the response.

        Raises:
            ApiStatusError: the status is 400 or higher.
        """
        kind = {"Content-Type": "application/json", **(headers or {})}
        reply = self._http.request(method, path, content=None if body is None else json.dumps(body), headers=kind)
        if reply.is_error:
            message = json.loads(reply.text).get("message") if reply.text.startswith("{") else reply.text
            raise ApiStatusError(f"{method} {path}", reply.status_code, message)
        return reply.content

    def create(self, manifest: Mapping[str, Any]) -> JsonObject:
        """Create an object with its status, and return it as stored. `delete_created` deletes it."""
        resource = ALL_RESOURCES[manifest["kind"]]
        body = {"apiVersion": resource.version, **manifest}
        created = json.loads(self._post(resource.collection_path(body["metadata"].get("namespace", "")), body))
        self._created.append(created)
        if resource.writes_status_separately and "status" in manifest:
            patch = {"status": manifest["status"]}
            created = json.loads(
                self.call("PATCH", f"{resource.object_path(created)}/status", patch, _MERGE_PATCH_HEADERS)
            )
        return dict(created)

    def _post(self, path: str, body: JsonObject) -> bytes:
        """Retry while admission has not yet seen a new priority class."""
        deadline = monotonic() + _TIMEOUT
        while True:
            try:
                return self.call("POST", path, body)
            except ApiStatusError as error:
                if "no PriorityClass with name" not in str(error) or monotonic() > deadline:
                    raise

    def get(self, kind: str, name: str, namespace: str = "") -> JsonObject:
        """Return an object."""
        return dict(json.loads(self.call("GET", f"{ALL_RESOURCES[kind].collection_path(namespace)}/{name}")))

    def patch(self, obj: Mapping[str, Any], change: Mapping[str, Any], subresource: str = "") -> JsonObject:
        """Apply a merge patch and return the changed object."""
        path = ALL_RESOURCES[obj["kind"]].object_path(obj) + (f"/{subresource}" if subresource else "")
        return dict(json.loads(self.call("PATCH", path, change, _MERGE_PATCH_HEADERS)))

    def list(self, kind: str) -> bytes:
        """Return the list of a kind in all namespaces, as JSON."""
        return self.call("GET", ALL_RESOURCES[kind].list_path)

    def get_resource_version(self, kind: str) -> str:
        """Return the current resource version of the list of a kind."""
        return str(json.loads(self.list(kind))["metadata"]["resourceVersion"])

    def delete(self, obj: Mapping[str, Any]) -> None:
        """Delete an object without grace period and without finalizers; do nothing if it does not exist."""
        path = ALL_RESOURCES[obj["kind"]].object_path(obj)
        try:
            remaining = json.loads(self.call("DELETE", f"{path}?gracePeriodSeconds=0"))
            # No controllers run here that would remove the finalizers.
            if remaining["kind"] == "Namespace":
                self.call("PUT", f"{path}/finalize", {**remaining, "spec": {"finalizers": []}})
            elif remaining.get("metadata", {}).get("finalizers"):
                self.call("PATCH", path, {"metadata": {"finalizers": None}}, _MERGE_PATCH_HEADERS)
        except ApiStatusError as error:
            if error.status != httpx2.codes.NOT_FOUND:
                raise

    def delete_created(self) -> None:
        """Delete the objects that this client created, in reverse order."""
        while self._created:
            self.delete(self._created.pop())

    def wait_until(
        self,
        kind: str,
        is_met: Callable[[Mapping[str, JsonObject]], bool],
        description: str,
        seconds: float = _WAIT_TIMEOUT,
        since: str = "",
    ) -> dict[str, JsonObject]:
        """Wait until a condition on the objects of a kind is met, with a list and a watch.

        Args:
            kind: the kind to watch.
            is_met: takes all objects by `object_key`.
            description: names the condition in the error.
            seconds: the timeout.
            since: a resource version at which there was no object; the condition may have been met since then and not
                be met any more. Empty: it is met now or later.

        Returns:
            The objects that meet the condition, by key.

        Raises:
            WaitTimeoutError: the condition was not met in time.
        """
        deadline = monotonic() + seconds
        objects: dict[str, JsonObject] = {}
        version = since
        while monotonic() < deadline:
            if not version:
                listed = json.loads(self.list(kind))
                objects = {object_key(item): {"kind": kind, **item} for item in listed["items"]}
                if is_met(objects):
                    return objects
                version = listed["metadata"]["resourceVersion"]
            for change, obj in self._watch(kind, version, deadline, description):
                if change == "DELETED":
                    objects.pop(object_key(obj), None)
                else:
                    objects[object_key(obj)] = obj
                if is_met(objects):
                    return objects
            version = ""  # a server that restarts ends its watches
        error = WaitTimeoutError(f"{description} did not happen within {seconds:.0f} s")
        error.add_note(str({name: obj.get("status") for name, obj in objects.items()})[:2000])
        raise error

    def _watch(self, kind: str, since: str, deadline: float, what: str) -> Iterator[tuple[str, JsonObject]]:
        remaining = max(deadline - monotonic(), 0.1)
        query = {"watch": "true", "resourceVersion": since, "timeoutSeconds": str(math.ceil(remaining))}
        with (
            suppress(httpx2.ReadTimeout),
            self._http.stream("GET", ALL_RESOURCES[kind].list_path, params=query, timeout=remaining) as reply,
        ):
            for line in reply.iter_lines():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise WaitTimeoutError(f"the watch for {what} broke: {event['object'].get('message')}")
                yield event["type"], event["object"]
                if monotonic() > deadline:
                    return

    def wait_for(self, obj: Mapping[str, Any], is_met: Callable[[JsonObject], bool], description: str) -> JsonObject:
        """Wait until a condition on an object is met, and return the object."""
        name = object_key(obj)
        found = self.wait_until(obj["kind"], lambda objects: name in objects and is_met(objects[name]), description)
        return found[name]


def object_key(obj: Mapping[str, Any]) -> str:
    """Return `namespace/name`, or the name of an object without a namespace."""
    meta = obj["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else str(meta["name"])


def find_condition(obj: Mapping[str, Any], kind: str) -> JsonObject:
    """Return the condition of a type; empty if there is none."""
    conditions = obj.get("status", {}).get("conditions") or ()
    return next((dict(condition) for condition in conditions if condition["type"] == kind), {})
