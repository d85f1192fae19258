"""Collects the objects of a random cluster; every choice comes from one seeded generator."""

from collections.abc import Sequence
from random import Random
from typing import Any, Final, TypeVar

T = TypeVar("T")
Raw = dict[str, Any]

CREATED: Final = "2026-02-01T00:00:00Z"

LABELS: Final = {
    "app": ("a", "b", "c"),
    "tier": ("front", "back"),
    "version": ("v1", "v2"),
}
"""The labels of pods; few values, so that selectors often match."""


class ClusterBuilder:
    """The objects of one scenario.

    Attributes:
        rng: the source of all choices.
        items: the objects in order of creation.
        nodes: the nodes among them.
        namespaces: the names of the namespaces.
    """

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.items: list[Raw] = []
        self.nodes: list[Raw] = []
        self.namespaces: list[str] = []
        self._version = 100

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.rng.random() < probability

    def pick(self, values: Sequence[T]) -> T:
        """Return one of the values."""
        return self.rng.choice(values)

    def sample(self, values: Sequence[T], least: int, most: int) -> list[T]:
        """Return some of the values, each once, in random order."""
        return self.rng.sample(values, min(len(values), self.rng.randint(least, most)))

    def add(self, api_version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Raw:
        """Add an object with the metadata that an API server sets; *fields* may contain more of `metadata`."""
        self._version += 1
        metadata = {
            "name": name,
            **({"namespace": namespace} if namespace else {}),
            "uid": f"{kind.lower()}-{self._version}",
            "resourceVersion": str(self._version),
            "creationTimestamp": CREATED,
            **fields.pop("metadata", {}),
        }
        item = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}
        self.items.append(item)
        return item

    def add_namespaces(self) -> None:
        """Add three namespaces with different labels."""
        for name, team in (("default", "a"), ("shop", "b"), ("batch", "")):
            labels = {"kubernetes.io/metadata.name": name}
            if team:
                labels["team"] = team
            if name == "shop":
                labels["resource.kubernetes.io/admin-access"] = "true"
            spec = {"finalizers": ["kubernetes"]}
            self.add("v1", "Namespace", name, metadata={"labels": labels}, spec=spec, status={"phase": "Active"})
            self.namespaces.append(name)

    def pod_labels(self) -> dict[str, str]:
        """Return random labels of a pod."""
        return {key: self.pick(values) for key, values in LABELS.items() if self.chance(0.7)}

    def label_selector(self) -> Raw:
        """Return a random label selector; it may be empty, which matches all objects."""
        if self.chance(0.08):
            return {}
        selector: Raw = {}
        keys = self.sample(list(LABELS), 1, 2)
        if self.chance(0.7):
            selector["matchLabels"] = {keys[0]: self.pick(LABELS[keys[0]])}
        if not selector or self.chance(0.3):
            selector["matchExpressions"] = [self.label_requirement(keys[-1], LABELS[keys[-1]])]
        return selector

    def label_requirement(self, key: str, values: Sequence[str]) -> Raw:
        """Return a random requirement of a label selector."""
        operator = self.pick(("In", "In", "NotIn", "Exists", "DoesNotExist"))
        requirement: Raw = {"key": key, "operator": operator}
        if operator in ("In", "NotIn"):
            requirement["values"] = self.sample(values, 1, 2)
        return requirement
