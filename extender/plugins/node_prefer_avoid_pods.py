"""NodePreferAvoidPods: keep the pods of a controller away from nodes that ask to be spared them.

**Scores** 0 for a node whose annotation `scheduler.alpha.kubernetes.io/preferAvoidPods` lists the pod's controller,
by kind and uid; 100 for all others. Only pods that a ReplicationController or ReplicaSet controls can be listed. An
annotation that cannot be read lists nobody. Scores are not normalized. Releases gave it the weight 10000, so that
nothing else could outvote it.

**Options** none. A plugin of releases up to 1.22.

Source: C059.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar, Final

import msgspec
import numpy as np

from extender.cluster.arrays import IntArray
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView
from extender.framework.normalize import MAX_SCORE
from extender.framework.points import Reads

_ANNOTATION: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_CONTROLLERS: Final = ("ReplicationController", "ReplicaSet")


class NodePreferAvoidPods:
    """Reads one annotation of nodes; scores are kept by controller."""

    name: ClassVar[str] = "NodePreferAvoidPods"
    score_reads: ClassVar[Reads] = Reads.NODE

    def score_key(self, pod: PodQuery) -> tuple[str, ...]:
        """Kind and uid of the controller; empty if no node can ask to be spared the pod."""
        owner = pod.shape.controller
        return (owner.kind, owner.uid) if owner is not None and owner.kind in _CONTROLLERS else ()

    def score(self, pod: PodQuery, nodes: NodeView, notes: Any) -> IntArray:  # noqa: ARG002  the point's signature
        """0 or 100 a node. Source: C059."""
        scores = np.full(len(nodes), MAX_SCORE, dtype=np.int64)
        controller = self.score_key(pod)
        if not controller:
            return scores
        for place, node in enumerate(nodes.nodes):
            written = node.metadata.annotations.get(_ANNOTATION)
            if written is not None and controller in _avoided(written):
                scores[place] = 0
        return scores


@lru_cache(maxsize=1024)
def _avoided(written: str) -> frozenset[tuple[str, str]]:
    """Kind and uid of the controllers that an annotation lists; none if it cannot be read."""
    try:
        document = msgspec.json.decode(written)
        return frozenset(_controllers(document))
    except (msgspec.DecodeError, TypeError):
        return frozenset()


def _controllers(document: object) -> Iterator[tuple[str, str]]:
    for entry in _field(document, "preferAvoidPods") or ():
        controller = _field(_field(entry, "podSignature"), "podController")
        if controller is not None:
            yield _text(controller, "kind"), _text(controller, "uid")


def _field(thing: object, key: str) -> Any:
    """The field *key* of an object, found as Go finds it: whatever the case of its letters.

    Raises:
        TypeError: *thing* is no object.
    """
    if thing is None:
        return None
    if not isinstance(thing, Mapping):
        raise TypeError(key)
    return next((value for name, value in thing.items() if name.casefold() == key.casefold()), None)


def _text(thing: object, key: str) -> str:
    value = _field(thing, key)
    if value is not None and not isinstance(value, str):
        raise TypeError(key)
    return value or ""
