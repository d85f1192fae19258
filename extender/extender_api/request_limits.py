"""The limits of requests to the verbs, and the error of a request that is rejected."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from extender.api.kinds.pod import Pod
from extender.api.pod_limits import find_exceeded_limit

MAX_NAMES_BYTES = 8 << 20
"""Limit of a request with node names: 50,000 names of 150 bytes."""

MAX_NODES_BYTES = 256 << 20
"""Limit of any request: 15,000 nodes of 16 KiB."""

MAX_OBJECT_BYTES = 3 << 20
"""Limit of a pod or node in JSON: etcd limits objects to 1.5 MiB, and JSON takes up to twice as much."""

MAX_NODES = 100_000
"""Limit of the nodes of a request; the largest known clusters have 65,000."""

MAX_VICTIMS = 100_000
"""Limit of the victims of a request. kube-scheduler proposes victims on a tenth of the nodes."""

MAX_JSON_OBJECTS: Final = 20_000
MAX_JSON_VALUES: Final = 50_000
"""Limits of the JSON objects in a pod or node, and of its fields and items. A pod with 20,000 environment variables, or
a node with 10,000 images, has fewer."""

_MAX_JSON_OBJECTS_ON_NODE = 100_000
"""Limit of the JSON objects of all victims on one node. A pod with many containers has about a hundred."""

_MIN_NAME_BYTES = 3
"""Bytes of an empty name and its comma in a list of names in JSON."""


class RequestError(Exception):
    """A request is rejected with an HTTP status and one line.

    Attributes:
        status: the HTTP status.
        message: the error, with the field if there is one.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def check_raw_object(field: str, raw: bytes) -> None:
    """Check the size of the pod or node in *field* and the number of its JSON values before it is decoded.

    Raises:
        RequestError: 413, it exceeds a limit.
    """
    if len(raw) > MAX_OBJECT_BYTES:
        raise RequestError(413, f"{field}: more than {MAX_OBJECT_BYTES} bytes")
    if len(raw) <= MAX_JSON_OBJECTS or not _has_many_values(raw):
        return
    structure = _remove_strings(raw)
    if structure.count(b"{") > MAX_JSON_OBJECTS:
        raise RequestError(413, f"{field}: more than {MAX_JSON_OBJECTS} JSON objects")
    if _has_many_values(structure):
        raise RequestError(413, f"{field}: more than {MAX_JSON_VALUES} JSON fields and items")


def _has_many_values(raw: bytes) -> bool:
    """Return whether JSON has more braces or commas than allowed, those in strings included."""
    return raw.count(b"{") > MAX_JSON_OBJECTS or raw.count(b",") >= MAX_JSON_VALUES


def _remove_strings(raw: bytes) -> bytes:
    """Return the JSON *raw* without the contents of its strings."""
    if b"\\" in raw:
        raw = raw.replace(rb"\\", b"").replace(rb"\"", b"")
    characters = np.frombuffer(raw, dtype=np.uint8)
    return characters[~np.logical_xor.accumulate(characters == ord('"'))].tobytes()


def check_pod_limits(pod: Pod) -> None:
    """Check the limits of `pod_limits`.

    Raises:
        RequestError: 413, the pod exceeds one.
    """
    problem = find_exceeded_limit(pod)
    if problem:
        raise RequestError(413, f"Pod.{problem}")


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """The limits of a request; each has a flag of `extender serve`.

    Attributes:
        max_names_bytes: the bytes of a request without whole objects.
        max_bytes: the bytes of any request.
        max_nodes: the nodes of a request, by name or as whole objects.
        max_victims: the victims of a preempt request, on all nodes together.
    """

    max_names_bytes: int = MAX_NAMES_BYTES
    max_bytes: int = MAX_NODES_BYTES
    max_nodes: int = MAX_NODES
    max_victims: int = MAX_VICTIMS

    def check_names(self, body_bytes: int, raw_names: bytes) -> None:
        """Check a request with node names before the names are decoded.

        Raises:
            RequestError: 413, the request has more than `max_names_bytes`, or more than `max_nodes` names.
        """
        if body_bytes > self.max_names_bytes:
            raise RequestError(
                413, f"a request with NodeNames may have at most {self.max_names_bytes} bytes; it has {body_bytes}"
            )
        if len(raw_names) // _MIN_NAME_BYTES > self.max_nodes:  # else there are fewer names, and counting takes time
            self.check_nodes("NodeNames", raw_names.count(b'"') // 2)

    def check_nodes(self, field: str, count: int) -> None:
        """Check the number of nodes in *field*.

        Raises:
            RequestError: 413, there are more than `max_nodes`.
        """
        if count > self.max_nodes:
            raise RequestError(413, f"{field}: more than {self.max_nodes} nodes; --max-nodes sets the limit")

    def check_victims(self, field: str, count: int) -> None:
        """Check the number of victims in *field*.

        Raises:
            RequestError: 413, there are more than `max_victims`.
        """
        if count > self.max_victims:
            raise RequestError(413, f"{field}: more than {self.max_victims} victims; --max-victims sets the limit")

    def check_victims_on_node(self, field: str, raw: bytes) -> None:
        """Check the number of JSON objects in the victims on one node before they are decoded.

        Raises:
            RequestError: 413, there are more than `_MAX_JSON_OBJECTS_ON_NODE`.
        """
        if raw.count(b"{") > _MAX_JSON_OBJECTS_ON_NODE:
            raise RequestError(413, f"{field}: more than {_MAX_JSON_OBJECTS_ON_NODE} JSON objects on one node")


DEFAULT_LIMITS = RequestLimits()
