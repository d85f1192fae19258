"""A small client for tests: create, list, delete, and wait for something to become true by watching."""

import json
import math
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self

import httpx2

from tests.controlplane.resources import ALL

Thing = dict[str, Any]
"""An object as parsed JSON."""

Unreachable = httpx2.TransportError
"""Nobody answers at the address."""

_PATIENCE: Final = 30.0
_MERGE: Final = {"Content-Type": "application/merge-patch+json"}


class RefusedError(Exception):
    """The API server answered with a failure.

    Attributes:
        status: the HTTP status code.
    """

    def __init__(self, request: str, status: int, text: str) -> None:
        super().__init__(f"{request}: {status} {text}")
        self.status = status


class LateError(Exception):
    """What was waited for did not happen in time."""


class Api:
    """Speaks to one API server for one user.

    Args:
        url: its address.
        token: a bearer token.
        trust: how its certificate is judged.
    """

    def __init__(self, url: str, token: str, trust: ssl.SSLContext) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx2.Client(base_url=url, headers=headers, verify=trust, timeout=_PATIENCE, trust_env=False)
        self._created: list[Thing] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends all connections."""
        self._http.close()

    def ready(self) -> bool:
        """Whether the API server says that it is ready."""
        return self._http.get("/readyz").status_code == httpx2.codes.OK

    def call(self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> bytes:
        """One request; the reply's bytes.

        Raises:
            RefusedError: it failed.
        """
        kind = {"Content-Type": "application/json", **(headers or {})}
        reply = self._http.request(method, path, content=None if body is None else json.dumps(body), headers=kind)
        if reply.is_error:
            message = json.loads(reply.text).get("message") if reply.text.startswith("{") else reply.text
            raise RefusedError(f"{method} {path}", reply.status_code, message)
        return reply.content

    def create(self, manifest: Mapping[str, Any]) -> Thing:
        """Creates an object, with its status where it has one; as the API server keeps it.

        `clean` deletes it.
        """
        resource = ALL[manifest["kind"]]
        body = {"apiVersion": resource.version, **manifest}
        made = json.loads(self._post(resource.collection(body["metadata"].get("namespace", "")), body))
        self._created.append(made)
        if resource.status and "status" in manifest:
            patch = {"status": manifest["status"]}
            made = json.loads(self.call("PATCH", f"{resource.path(made)}/status", patch, _MERGE))
        return dict(made)

    def _post(self, path: str, body: Thing) -> bytes:
        """Admission may learn of a new priority class a moment later than we do; then it is asked again."""
        until = monotonic() + _PATIENCE
        while True:
            try:
                return self.call("POST", path, body)
            except RefusedError as fault:
                if "no PriorityClass with name" not in str(fault) or monotonic() > until:
                    raise

    def get(self, kind: str, name: str, namespace: str = "") -> Thing:
        """One object as it is now."""
        return dict(json.loads(self.call("GET", f"{ALL[kind].collection(namespace)}/{name}")))

    def patch(self, thing: Mapping[str, Any], change: Mapping[str, Any], subresource: str = "") -> Thing:
        """Changes an object by a merge patch; as it is afterwards."""
        path = ALL[thing["kind"]].path(thing) + (f"/{subresource}" if subresource else "")
        return dict(json.loads(self.call("PATCH", path, change, _MERGE)))

    def list(self, kind: str) -> bytes:
        """All objects of a kind in all namespaces, as JSON."""
        return self.call("GET", ALL[kind].root)

    def delete(self, thing: Mapping[str, Any]) -> None:
        """Deletes an object at once, whatever would hold it; nothing happens if it is gone."""
        path = ALL[thing["kind"]].path(thing)
        try:
            left = json.loads(self.call("DELETE", f"{path}?gracePeriodSeconds=0"))
            # What holds it would be done by controllers, which nobody runs here.
            if left["kind"] == "Namespace":
                self.call("PUT", f"{path}/finalize", {**left, "spec": {"finalizers": []}})
            elif left.get("metadata", {}).get("finalizers"):
                self.call("PATCH", path, {"metadata": {"finalizers": None}}, _MERGE)
        except RefusedError as fault:
            if fault.status != httpx2.codes.NOT_FOUND:
                raise

    def clean(self) -> None:
        """Deletes what was created here, last first."""
        while self._created:
            self.delete(self._created.pop())

    def wait_until(
        self, kind: str, happened: Callable[[Mapping[str, Thing]], bool], what: str, seconds: float = _PATIENCE
    ) -> dict[str, Thing]:
        """Waits until something is true of the objects of a kind, by a list and a watch.

        Args:
            kind: what to watch.
            happened: told all objects by `namespace/name`, or by name where there are no namespaces.
            what: is waited for, for the message.
            seconds: how long at most.

        Returns:
            The objects at that moment.

        Raises:
            LateError: it did not happen.
        """
        until = monotonic() + seconds
        while monotonic() < until:  # a server that restarts ends its watches
            listed = json.loads(self.list(kind))
            things = {key(item): {"kind": kind, **item} for item in listed["items"]}
            if happened(things):
                return things
            for change, thing in self._changes(kind, listed["metadata"]["resourceVersion"], until, what):
                if change == "DELETED":
                    things.pop(key(thing), None)
                else:
                    things[key(thing)] = thing
                if happened(things):
                    return things
        raise LateError(f"{what} did not happen within {seconds:.0f} s")

    def _changes(self, kind: str, since: str, until: float, what: str) -> Iterator[tuple[str, Thing]]:
        left = max(until - monotonic(), 0.1)
        query = {"watch": "true", "resourceVersion": since, "timeoutSeconds": str(math.ceil(left))}
        with (
            suppress(httpx2.ReadTimeout),
            self._http.stream("GET", ALL[kind].root, params=query, timeout=left) as reply,
        ):
            for line in reply.iter_lines():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise LateError(f"the watch for {what} broke: {event['object'].get('message')}")
                yield event["type"], event["object"]
                if monotonic() > until:
                    return

    def wait_for(self, thing: Mapping[str, Any], happened: Callable[[Thing], bool], what: str) -> Thing:
        """Waits until something is true of one object; as it is then."""
        name = key(thing)
        found = self.wait_until(thing["kind"], lambda things: name in things and happened(things[name]), what)
        return found[name]


def key(thing: Mapping[str, Any]) -> str:
    """`namespace/name`, or the name of what knows no namespace."""
    meta = thing["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else str(meta["name"])


def condition(thing: Mapping[str, Any], kind: str) -> Thing:
    """The condition of this type; empty if there is none."""
    found = thing.get("status", {}).get("conditions") or ()
    return next((dict(each) for each in found if each["type"] == kind), {})
