"""ImageLocality: nodes that have the pod's images already need not pull them.

**Refuses** none.

**Scores** the summed sizes of the images of init containers, containers and image volumes that a node has, each size
scaled by the share of all nodes that have the image, so that pods are not drawn to the few nodes with a rare image.
The sum is brought to 0..100 between 23 MiB and 1000 MiB a container. Images are compared by name; a name without tag
means `:latest`.

**Undone by** none.

**Options** none.

Source: B050 to B053.
"""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from extender.cluster.arrays import IntArray
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView
from extender.framework.normalize import MAX_SCORE
from extender.framework.points import Reads
from extender.objects.pod import PodSpec

_MIB = 1024 * 1024
_LEAST = 23 * _MIB
_MOST_A_CONTAINER = 1000 * _MIB


@dataclass(frozen=True, slots=True)
class _Images:
    """What the score needs of a pod.

    Attributes:
        uses: how often each image is used, by its full name.
        containers: init containers and containers.
        key: all of that.
    """

    uses: dict[str, int]
    containers: int
    key: Hashable


class ImageLocality:
    """Adds up sizes under the masks of the nodes that hold each image.

    An image that arrives at one node changes the score of every node that has it.
    """

    name: ClassVar[str] = "ImageLocality"
    score_reads: ClassVar[Reads] = Reads.NODES

    def score_key(self, pod: PodQuery) -> Hashable | None:
        """Scores are alike for pods with the same images, each as often, and as many containers."""
        return self._images(pod).key

    def score(self, pod: PodQuery, nodes: NodeView, notes: Any) -> IntArray:  # noqa: ARG002  the point's signature
        """0 to 100 a node."""
        images = self._images(pod)
        cluster = nodes.snapshot
        sums = np.zeros(len(nodes), dtype=np.int64)
        held = False
        for name, uses in images.uses.items():
            state = cluster.image(name)
            if state is not None:
                spread = len(state.rows) / len(cluster)
                size = int(float(state.size) * spread)
                sums += nodes.take(state.mask(len(cluster))) * np.int64(size * uses)
                held = True
        most = _MOST_A_CONTAINER * images.containers
        if not held and images.containers:
            return sums
        clamped = np.where(sums < _LEAST, _LEAST, np.minimum(sums, most))
        return MAX_SCORE * (clamped - _LEAST) // (most - _LEAST)

    def _images(self, pod: PodQuery) -> _Images:
        return pod.shape.kin.remember(self.name, lambda: _images(pod.shape.spec))


def _images(spec: PodSpec) -> _Images:
    containers = (*spec.init_containers, *spec.containers)
    names = [container.image for container in containers]
    names += [volume.image.reference for volume in spec.volumes if volume.image is not None]
    uses = Counter(map(_full_name, names))
    return _Images(dict(uses), len(containers), (frozenset(uses.items()), len(containers)))


def _full_name(name: str) -> str:
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"
