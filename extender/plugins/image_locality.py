"""ImageLocality prefers nodes that already have the pod's images.

**Rejects** no node.

**Scores** nodes by the total size of the pod's images that they have. The images of init containers, containers and
image volumes count. Each size is multiplied by the fraction of all nodes that have the image. Otherwise pods would
concentrate on the few nodes with a rare image. A total of 23 MiB or less scores 0. A total of 1000 MiB per image or
more scores 100. In release 1.36, image volumes do not raise this limit. Images are compared by name. A name without a
tag gets the tag `:latest`.

**Requeued on** no event.

**Options** none.

Source: pkg/scheduler/framework/plugins/imagelocality/image_locality.go, sumImageScores, ImageLocality.Score (1.37).
"""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from extender.api.kinds.pod import PodSpec
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import IntArray
from extender.framework.extension_points import DependsOn
from extender.framework.normalize import MAX_SCORE
from extender.framework.plugin_args import PluginArgs

_MIB = 1024 * 1024
_MIN_THRESHOLD = 23 * _MIB
_MAX_CONTAINER_THRESHOLD = 1000 * _MIB


@dataclass(frozen=True, slots=True)
class _PodImages:
    """The images of a pod.

    Attributes:
        uses: the number of uses of each image, by normalized name.
        count: the number of images by which the upper threshold is multiplied.
        cache_key: the other attributes in hashable form.
    """

    uses: dict[str, int]
    count: int
    cache_key: Hashable


class ImageLocality:
    """Adds up the sizes of the pod's images on each node.

    If a node pulls an image, the scores of all nodes with that image change.
    """

    name: ClassVar[str] = "ImageLocality"
    score_depends_on: ClassVar[DependsOn] = DependsOn.ALL_NODES

    def __init__(self, args: PluginArgs[None]) -> None:
        self._counts_image_volumes = args.gates.release.counts_image_volumes
        self._cache_key = (self.name, self._counts_image_volumes)

    def score_cache_key(self, pod: PodInfo) -> Hashable | None:
        """Return the pod's images with their numbers of uses, and the number of images."""
        return self._get_images(pod).cache_key

    def score(self, pod: PodInfo, nodes: NodeView, state: Any) -> IntArray:  # noqa: ARG002  the extension point's signature
        """Return a score from 0 to 100 for each node."""
        images = self._get_images(pod)
        snapshot = nodes.snapshot
        sums = np.zeros(len(nodes), dtype=np.int64)
        has_any_image = False
        for name, uses in images.uses.items():
            image_state = snapshot.image_state(name)
            if image_state is not None:
                spread = len(image_state.rows) / len(snapshot)
                size = int(float(image_state.size) * spread)
                amount = np.uint64(size * uses % 2**64).astype(np.int64)  # wraps around as in Go
                sums += nodes.take(image_state.get_mask(len(snapshot))) * amount
                has_any_image = True
        max_threshold = _MAX_CONTAINER_THRESHOLD * images.count
        if not has_any_image and images.count:
            return sums
        clamped_sums = np.where(sums < _MIN_THRESHOLD, _MIN_THRESHOLD, np.minimum(sums, max_threshold))
        return MAX_SCORE * (clamped_sums - _MIN_THRESHOLD) // (max_threshold - _MIN_THRESHOLD)

    def _get_images(self, pod: PodInfo) -> _PodImages:
        return pod.signature.spec_class.get_or_create(
            self._cache_key,
            lambda: _build_pod_images(pod.signature.spec, counts_image_volumes=self._counts_image_volumes),
        )


def _build_pod_images(spec: PodSpec, *, counts_image_volumes: bool) -> _PodImages:
    container_images = [container.image for container in (*spec.init_containers, *spec.containers)]
    volume_images = [volume.image.reference for volume in spec.volumes if volume.image is not None]
    uses = Counter(map(_normalize_image_name, (*container_images, *volume_images)))
    count = len(container_images) + (len(volume_images) if counts_image_volumes else 0)
    return _PodImages(dict(uses), count, (frozenset(uses.items()), count))


def _normalize_image_name(name: str) -> str:
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"
