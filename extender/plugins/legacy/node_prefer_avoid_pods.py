"""NodePreferAvoidPods avoids nodes whose annotation lists the pod's controller.

**Scores** a node with 0 if its annotation `scheduler.alpha.kubernetes.io/preferAvoidPods` lists the pod's controller by
kind and uid. All other nodes score 100. Only a ReplicationController or ReplicaSet can be listed. An invalid annotation
lists no controller. Scores are not normalized. The plugin's default weight was 10000, more than that of all
other plugins together.

**Options** none. Releases up to 1.22 have this plugin.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar, Final

import msgspec
import numpy as np

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import IntArray
from extender.framework.extension_points import DependsOn
from extender.framework.normalize import MAX_SCORE

_ANNOTATION: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_CONTROLLER_KINDS: Final = ("ReplicationController", "ReplicaSet")


class NodePreferAvoidPods:
    """Scores nodes by one annotation. Scores are cached by controller."""

    name: ClassVar[str] = "NodePreferAvoidPods"
    score_depends_on: ClassVar[DependsOn] = DependsOn.NODE

    def score_cache_key(self, pod: PodInfo) -> tuple[str, ...]:
        """Return the kind and uid of the pod's controller; empty for controllers that cannot be listed."""
        owner = pod.signature.controller
        return (owner.kind, owner.uid) if owner is not None and owner.kind in _CONTROLLER_KINDS else ()

    def score(self, pod: PodInfo, nodes: NodeView, state: Any) -> IntArray:  # noqa: ARG002  the extension point's signature
        """Return 0 or 100 for each node.

        Source: pkg/scheduler/framework/plugins/nodepreferavoidpods/node_prefer_avoid_pods.go,
        NodePreferAvoidPods.Score (1.21).
        """
        scores = np.full(len(nodes), MAX_SCORE, dtype=np.int64)
        controller = self.score_cache_key(pod)
        if not controller:
            return scores
        for position, node in enumerate(nodes.nodes):
            annotation = node.metadata.annotations.get(_ANNOTATION)
            if annotation is not None and controller in _parse_avoided_controllers(annotation):
                scores[position] = 0
        return scores


@lru_cache(maxsize=1024)
def _parse_avoided_controllers(annotation: str) -> frozenset[tuple[str, str]]:
    """Return the kind and uid of each controller in *annotation*; an empty set if it is invalid."""
    try:
        document = msgspec.json.decode(annotation)
        return frozenset(_iter_controllers(document))
    except (msgspec.DecodeError, TypeError):
        return frozenset()


def _iter_controllers(document: object) -> Iterator[tuple[str, str]]:
    for entry in _get_field(document, "preferAvoidPods") or ():
        controller = _get_field(_get_field(entry, "podSignature"), "podController")
        if controller is not None:
            yield _get_string_field(controller, "kind"), _get_string_field(controller, "uid")


def _get_field(json_object: object, key: str) -> Any:
    """Return the field *key* of *json_object*. Case is ignored, as in Go.

    Raises:
        TypeError: *json_object* is not an object.
    """
    if json_object is None:
        return None
    if not isinstance(json_object, Mapping):
        raise TypeError(key)
    return next((value for name, value in json_object.items() if name.casefold() == key.casefold()), None)


def _get_string_field(json_object: object, key: str) -> str:
    value = _get_field(json_object, key)
    if value is not None and not isinstance(value, str):
        raise TypeError(key)
    return value or ""
