"""Pods on chosen nodes that real ReplicaSets adopt, so that their controller replaces an evicted pod."""

import json
from typing import Any, Final

from tests.controlplane.api_client import ApiClient
from tests.controlplane.control_plane import ControlPlane

CONTROLLERS: Final = ("replicaset-controller", "disruption-controller")
"""The controllers of kube-controller-manager that replace pods and calculate budgets."""


def create_replica_set(api: ApiClient, name: str, nodes: list[str], spec: dict[str, Any]) -> None:
    """Create a ReplicaSet with one pod on each of *nodes*; an empty name leaves the pod to the scheduler.

    Pods with a node run and are ready, so that budgets count them.
    """
    labels = {"app": name}
    pod_spec = {"terminationGracePeriodSeconds": 0, **spec}
    for number, node in enumerate(nodes):
        if not node:
            continue
        meta = {"name": f"{name}-{number}", "namespace": "default", "labels": labels}
        pod = api.create({"kind": "Pod", "metadata": meta, "spec": {**pod_spec, "nodeName": node}})
        make_ready(api, pod)
    template = {"metadata": {"labels": labels}, "spec": pod_spec}
    replica_set_spec = {"replicas": len(nodes), "selector": {"matchLabels": labels}, "template": template}
    api.create({"kind": "ReplicaSet", "metadata": {"name": name, "namespace": "default"}, "spec": replica_set_spec})


def make_ready(api: ApiClient, pod: dict[str, Any]) -> None:
    """Let a pod run and be ready, as its kubelet does."""
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    api.patch(pod, {"status": {"phase": "Running", "conditions": [condition]}}, "status")


def wait_until_adopted(api: ApiClient, count: int) -> None:
    """Wait until *count* pods exist and all pods have a controller."""
    api.wait_until(
        "Pod",
        lambda pods: len(pods) >= count and all(pod["metadata"].get("ownerReferences") for pod in pods.values()),
        f"{count} pods with a controller",
    )


def delete_pods(plane: ControlPlane, api: ApiClient) -> None:
    """Stop the controllers, and delete all pods: also those that the controllers made."""
    plane.stop_other_programs()
    for pod in json.loads(api.list("Pod"))["items"]:
        api.delete({"kind": "Pod", **pod})


def make_containers(milli_cpu: int) -> list[dict[str, Any]]:
    """Make the containers of a pod."""
    return [{"name": "app", "image": "app", "resources": {"requests": {"cpu": f"{milli_cpu}m"}}}]
