"""Pod groups and their members for tests."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from extender.api.kinds.pod import Pod
from tests.build import make_object, make_pod


def make_pod_group(
    name: str = "ring",
    *,
    min_count: int | None = None,
    topology: str = "",
    status: Mapping[str, Any] | None = None,
    **spec_fields: Any,
) -> Any:
    """Make a pod group with the gang policy, or the basic one without *min_count*.

    *topology* is the label key of its topology constraint; *spec_fields* are other fields of the spec.
    """
    policy: dict[str, Any] = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    spec: dict[str, Any] = {"schedulingPolicy": policy, **spec_fields}
    if topology:
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return make_object(
        {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": metadata,
            "spec": spec,
            "status": status or {},
        }
    )


def make_composite_group(
    name: str = "root",
    *,
    min_group_count: int | None = None,
    parent: str = "",
    topology: str = "",
    created: str = "2026-01-01T00:00:00Z",
    **spec_fields: Any,
) -> Any:
    """Make a composite pod group with the gang policy, or the basic one without *min_group_count*.

    *parent* is the name of the composite pod group above it; the other arguments are those of `make_pod_group`.
    """
    policy: dict[str, Any] = {"basic": {}} if min_group_count is None else {"gang": {"minGroupCount": min_group_count}}
    spec: dict[str, Any] = {"schedulingPolicy": policy, **spec_fields}
    if parent:
        spec["parentCompositePodGroupName"] = parent
    if topology:
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "creationTimestamp": created}
    return make_object(
        {
            "apiVersion": "scheduling.k8s.io/v1alpha3",
            "kind": "CompositePodGroup",
            "metadata": metadata,
            "spec": spec,
        }
    )


def make_child_group(name: str, *, parent: str = "root", **more: Any) -> Any:
    """Make a pod group below the composite pod group *parent*."""
    return make_pod_group(name, parentCompositePodGroupName=parent, **more)


def make_group_member(
    name: str, *, node: str = "", group: str = "ring", spec: Mapping[str, Any] | None = None, **more: Any
) -> Pod:
    """Make a pod of *group*."""
    return make_pod(name, node=node, spec={"schedulingGroup": {"podGroupName": group}, **(spec or {})}, **more)


def make_chain(length: int, *, parent: str = "root", leaf: str = "leaf") -> list[Any]:
    """Make *length* composite pod groups `c0`, `c1`, ..., each below the one before, and the pod group *leaf*."""
    names = [parent, *(f"c{number}" for number in range(length))]
    groups = [make_composite_group(name, parent=above) for above, name in pairwise(names)]
    return [*groups, make_child_group(leaf, parent=names[-1])]
