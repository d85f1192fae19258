"""Compares the decision of a real kube-scheduler about a pod with ours."""

from typing import Any

from tests.controlplane.api_client import JsonObject, find_condition


def is_decided(pod: JsonObject) -> bool:
    """Return whether the pod was assigned, rejected or gated."""
    return bool(pod["spec"].get("nodeName")) or find_condition(pod, "PodScheduled").get("status") == "False"


def describe_difference(pod: JsonObject, explanation: dict[str, Any]) -> str:
    """Return how the decision of kube-scheduler differs from ours; empty if it does not.

    Args:
        pod: the pod after the decision of kube-scheduler, which selects one of the best nodes at random.
        explanation: our decision, as `extender explain -o json` prints it.
    """
    node, condition = pod["spec"].get("nodeName"), find_condition(pod, "PodScheduled")
    if node:
        best = explanation["best"]
        return "" if node in best else f"assigned to {node}; our best nodes: {best or explanation['message']}"
    if condition.get("reason") == "SchedulingGated":
        return "" if explanation["preEnqueue"] else "gated; we would enqueue it"
    message = explanation["message"]
    if message == condition["message"]:
        return ""
    return f"rejected: {condition['message']}\n  our message: {message or explanation['best']}"
