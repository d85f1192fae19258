"""The limits of a pod that is scheduled. Without them, one pod could keep the process busy for minutes."""

from typing import Final

from extender.api.codec import encode
from extender.api.kinds.pod import Pod, PodSpec

MAX_RULE_BYTES: Final = 256 << 10
MAX_RULE_FIELDS: Final = 1_000
"""Limits of the scheduling rules of a pod in JSON, because each rule is evaluated for all nodes. A term or constraint
has about five fields."""

MAX_LABELS: Final = 1_000
MAX_VOLUMES: Final = 1_000
MAX_CONTAINERS: Final = 1_000
"""Limits of the labels, of the volumes and of the containers of a pod."""

MAX_RESOURCE_NAMES: Final = 256
"""Limit of the resources of a pod, and of the resource names that the nodes of requests add to those of the cluster.

Each resource takes two numbers for each node. A cluster has about twenty resources.
"""

MAX_RESOURCE_NAME_LENGTH: Final = 317
"""Limit of the characters of a resource name, because names are cached: those of a qualified name with its prefix.

Source: apimachinery/pkg/util/validation/validation.go, IsQualifiedName (1.36).
"""


def find_exceeded_limit(pod: Pod) -> str:
    """Return the field of *pod* that exceeds a limit, and the limit; empty if there is none."""
    spec = pod.spec
    for field, count, limit in (
        ("metadata.labels", len(pod.metadata.labels), MAX_LABELS),
        ("spec.volumes", len(spec.volumes), MAX_VOLUMES),
        ("spec.containers and initContainers", len(spec.containers) + len(spec.init_containers), MAX_CONTAINERS),
    ):
        if count > limit:
            return f"{field}: more than {limit}"
    rules = encode((spec.node_selector, spec.affinity, spec.topology_spread_constraints, spec.tolerations))
    if len(rules) > MAX_RULE_BYTES or max(rules.count(b'":'), rules.count(b"{")) > MAX_RULE_FIELDS:
        return (
            "spec: nodeSelector, affinity, topologySpreadConstraints and tolerations have more than "
            f"{MAX_RULE_FIELDS} fields or {MAX_RULE_BYTES} bytes"
        )
    resource_names = get_resource_names(spec)
    if len(resource_names) > MAX_RESOURCE_NAMES:
        return f"spec.resources and those of containers: more than {MAX_RESOURCE_NAMES}"
    if max(map(len, resource_names), default=0) > MAX_RESOURCE_NAME_LENGTH:
        return f"spec.resources and those of containers: a name with more than {MAX_RESOURCE_NAME_LENGTH} characters"
    return ""


def get_resource_names(spec: PodSpec) -> set[str]:
    """Return the names of the resources that a pod requests or limits."""
    names = set(spec.overhead)
    for resources in (spec.resources, *(item.resources for item in (*spec.init_containers, *spec.containers))):
        if resources is not None:
            names.update(resources.requests, resources.limits)
    return names
