"""Map kinds to API paths: API version, plural, and whether they are namespaced."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

from extender.api.scheme import guess_plural
from extender.config.releases import Release


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The API path of a kind.

    Attributes:
        api_version: the API version, such as `v1` or `apps/v1`.
        plural: the plural resource name, such as `pods`.
        namespaced: whether objects have a namespace.
    """

    api_version: str
    plural: str
    namespaced: bool = True

    def build_api_path(self) -> str:
        """Return the path of the API version, which lists its resources."""
        return f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"

    def build_path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the escaped path of all objects, of a namespace's objects, of one object, or of a subresource.

        Raises:
            ValueError: *name* of a namespaced kind has no namespace.
        """
        if name and self.namespaced and not namespace:
            raise ValueError(f"{self.plural}/{name}: a namespace is missing")
        segments = [self.build_api_path()]
        if namespace and self.namespaced:
            segments += ["namespaces", _escape(namespace)]
        segments.append(self.plural)
        segments += [_escape(segment) for segment in (name, subresource) if segment]
        return "/".join(segments)


def _escape(segment: str) -> str:
    # A name of dots only would be a path to a parent folder.
    return quote(segment, safe="") if segment.strip(".") else segment.replace(".", "%2E")


_TABLE: Final = (
    # version, kinds with namespaces, kinds without
    ("v1", "Pod Service ReplicationController PersistentVolumeClaim ConfigMap", "Node Namespace PersistentVolume"),
    ("apps/v1", "ReplicaSet StatefulSet", ""),
    ("policy/v1", "PodDisruptionBudget", ""),
    ("scheduling.k8s.io/v1", "", "PriorityClass"),
    ("scheduling.k8s.io/v1beta1", "PodGroup", ""),
    ("scheduling.k8s.io/v1alpha3", "CompositePodGroup", ""),
    ("storage.k8s.io/v1", "CSIStorageCapacity", "StorageClass CSINode CSIDriver VolumeAttachment"),
    ("resource.k8s.io/v1", "ResourceClaim ResourceClaimTemplate", "ResourceSlice DeviceClass DeviceTaintRule"),
    ("coordination.k8s.io/v1", "Lease", ""),
    ("events.k8s.io/v1", "Event", ""),
    ("authentication.k8s.io/v1", "", "TokenReview"),
    ("authorization.k8s.io/v1", "", "SubjectAccessReview"),
)

ENDPOINTS: Final[Mapping[str, Endpoint]] = MappingProxyType(
    {
        kind: Endpoint(version, guess_plural(kind), namespaced)
        for version, namespaced_kinds, cluster_kinds in _TABLE
        for namespaced, kinds in ((True, namespaced_kinds), (False, cluster_kinds))
        for kind in kinds.split()
    }
    | {"CoschedulingPodGroup": Endpoint("scheduling.x-k8s.io/v1alpha1", "podgroups")}
)
"""The API paths of the kinds that we read or write, in the API versions of the newest release.

The keys are the names of our types.
"""


def get_endpoint(kind: str, release: Release) -> Endpoint:
    """Return the API path of *kind* in the API version that kube-scheduler of *release* uses."""
    endpoint = ENDPOINTS[kind]
    return replace(endpoint, api_version=release.api_versions.get(kind, endpoint.api_version))


_BEFORE_1_34: Final = "the API server does not serve {} of resource.k8s.io/v1, which Kubernetes 1.34 and later have"

MISSING_KIND_HINTS: Final[Mapping[str, str]] = {
    "CoschedulingPodGroup": (
        "the cluster does not serve podgroups of scheduling.x-k8s.io/v1alpha1; install the CustomResourceDefinition of"
        " scheduler-plugins, or remove the plugin Coscheduling from the configuration"
    ),
    **{kind: _BEFORE_1_34.format(guess_plural(kind)) for kind in ("DeviceClass", "ResourceClaim", "ResourceSlice")},
}
"""By kind, what to do if the API server does not serve it. Without the kind, pods that name it wait forever."""
