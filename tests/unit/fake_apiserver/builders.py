"""A manual clock, an API and manifests for tests of the fake API server."""

from dataclasses import dataclass
from typing import Any

from extender.fake_apiserver.registry.api import Api

Object = dict[str, Any]

START = 1_700_000_000.0
"""2023-11-14T22:13:20Z."""


@dataclass
class ManualClock:
    """A clock that is set by hand."""

    seconds: float = START

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> float:
        return self.seconds


def make_api() -> Api:
    """Return an API whose clock is at START."""
    return Api(clock=ManualClock())


def make_pod(name: str = "web", **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "app:1"}], **spec},
    }


def make_node(name: str = "n1") -> Object:
    status = {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def make_binding(node: str, name: str = "web", **meta: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **meta},
        "target": {"kind": "Node", "name": node},
    }
