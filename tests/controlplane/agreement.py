"""Whether a real kube-scheduler and our core agree about one pod."""

from typing import Any

from tests.controlplane.api import Thing, condition


def decided(pod: Thing) -> bool:
    """Whether the pod has been looked at: placed, refused or held back."""
    return bool(pod["spec"].get("nodeName")) or condition(pod, "PodScheduled").get("status") == "False"


def disagreement(theirs: Thing, ours: dict[str, Any]) -> str:
    """How kube-scheduler's decision and our answer differ; empty if they do not.

    Args:
        theirs: the pod once it is `decided`.
        ours: the long answer; kube-scheduler takes one of the best nodes by chance.
    """
    node, verdict = theirs["spec"].get("nodeName"), condition(theirs, "PodScheduled")
    if node:
        best = ours["best"]
        return "" if node in best else f"placed on {node}; we find {best or ours['message']}"
    if verdict.get("reason") == "SchedulingGated":
        return "" if ours["preEnqueue"] else "held back; we would let it into the queue"
    said = ours["message"]
    return "" if said == verdict["message"] else f"refused: {verdict['message']}\n  we say: {said or ours['best']}"
