"""Pod groups and their members for tests."""

from collections.abc import Mapping
from typing import Any

from extender.objects.pod import Pod
from tests.build import a_pod, an_object


def a_group(
    name: str = "ring",
    *,
    min_count: int | None = None,
    topology: str = "",
    status: Mapping[str, Any] | None = None,
    **spec_too: Any,
) -> Any:
    """A group with the gang policy, or without *min_count* the basic one; *topology* keeps it in one domain.

    *spec_too* is more of the spec, such as `priority` and `disruptionMode`.
    """
    policy: dict[str, Any] = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    spec: dict[str, Any] = {"schedulingPolicy": policy, **spec_too}
    if topology:
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return an_object(
        {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": metadata,
            "spec": spec,
            "status": status or {},
        }
    )


def a_member(
    name: str, *, node: str = "", group: str = "ring", spec: Mapping[str, Any] | None = None, **more: Any
) -> Pod:
    """A pod of *group*."""
    return a_pod(name, node=node, spec={"schedulingGroup": {"podGroupName": group}, **(spec or {})}, **more)
