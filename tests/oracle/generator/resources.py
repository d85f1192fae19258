"""Sets random resource requests of a pod: containers, overhead, pod-level requests, and in-place resizes."""

from typing import Any, Final

from tests.oracle.generator.builder import ClusterBuilder, Raw
from tests.oracle.generator.nodes import EXTENDED_RESOURCES

_CPU: Final = ("0", "50m", "100m", "250m", "500m", "1", "1500m", "2")
_MEMORY: Final = ("0", "64Mi", "128Mi", "500Mi", "1Gi", "1536Mi", "2Gi")


def make_requests(builder: ClusterBuilder, *, rich: bool) -> Raw:
    """Return the `resources` of a container; with *rich* also rare resources, and zero or missing requests."""
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    if builder.chance(0.85):
        requests["cpu"] = builder.pick(_CPU)
    if builder.chance(0.85):
        requests["memory"] = builder.pick(_MEMORY)
    if rich:
        if builder.chance(0.25):
            requests["ephemeral-storage"] = builder.pick(("0", "1Gi", "8Gi", "20Gi"))
        if builder.chance(0.15):
            requests["hugepages-2Mi"] = limits["hugepages-2Mi"] = builder.pick(("2Mi", "256Mi", "1Gi"))
            requests.setdefault("cpu", "100m")
        for resource in EXTENDED_RESOURCES:
            if builder.chance(0.15):
                requests[resource] = limits[resource] = builder.pick(("1", "2", "3"))
    return {key: value for key, value in (("requests", requests), ("limits", limits)) if value}


def set_resources(builder: ClusterBuilder, pod: Raw, *, rich: bool) -> None:
    """Set the requests of all containers; with *rich* also init containers, overhead and pod-level requests."""
    spec = pod["spec"]
    for container in spec["containers"]:
        container["resources"] = make_requests(builder, rich=rich)
    if not rich:
        return
    if builder.chance(0.3):
        spec["initContainers"] = []
        for number in range(builder.rng.randint(1, 2)):
            container = {"name": f"init-{number}", "image": "busybox:1", "resources": make_requests(builder, rich=True)}
            if builder.chance(0.5):
                container["restartPolicy"] = "Always"
            spec["initContainers"].append(container)
    if builder.chance(0.15):
        spec["runtimeClassName"] = "sandbox"
        spec["overhead"] = {"cpu": "120m", "memory": builder.pick(("64Mi", "1Gi"))}
    if builder.chance(0.15):
        # At least the sum over the containers, as the API server requires.
        for container in [*spec["containers"], *spec.get("initContainers", [])]:
            container["resources"] = {"requests": {"cpu": "100m", "memory": "64Mi"}}
        requests = {"cpu": builder.pick(("1", "2")), "memory": builder.pick(("1Gi", "2Gi"))}
        spec["resources"] = {"requests": dict(builder.sample(list(requests.items()), 1, 2))}


def add_resize(builder: ClusterBuilder, pod: Raw) -> None:
    """Add the status of an in-place resize to a bound pod."""
    statuses = []
    for container in pod["spec"]["containers"]:
        status: Raw = {"name": container["name"], "image": container["image"], "ready": True, "restartCount": 0}
        requests = container["resources"].get("requests", {})
        changed = {key: value for key, value in requests.items() if key in ("cpu", "memory")}
        for key in changed:
            changed[key] = builder.pick(_CPU if key == "cpu" else _MEMORY)
        if changed and builder.chance(0.8):
            status["resources"] = {"requests": changed}
        if changed and builder.chance(0.6):
            status["allocatedResources"] = {key: builder.pick(_CPU if key == "cpu" else _MEMORY) for key in changed}
        statuses.append(status)
    pod["status"]["containerStatuses"] = statuses
    if builder.chance(0.5):
        reason = builder.pick(("Infeasible", "Deferred"))
        condition = {"type": "PodResizePending", "status": "True", "reason": reason}
        pod["status"].setdefault("conditions", []).append(condition)


def add_deferred_resizes(builder: ClusterBuilder) -> dict[str, bool]:
    """Defer resizes of pods on nodes, some of which forbid preemption for them; return the feature gates.

    Only a kubelet writes the condition, so that pods without a node do not have it.
    """
    for item in builder.items:
        if item["kind"] == "Node" and builder.chance(0.15):
            item["spec"]["podPreemptionPolicy"] = {"disableResizePreemption": ["autoscaler.example.com/owner"]}
        elif item["kind"] == "Pod":
            conditions = item["status"].get("conditions", [])
            is_changed = not item["spec"].get("nodeName") or builder.chance(0.5)
            if is_changed:
                conditions = [condition for condition in conditions if condition["type"] != "PodResizePending"]
            if is_changed and item["spec"].get("nodeName"):
                conditions.append({"type": "PodResizePending", "status": "True", "reason": "Deferred"})
            item["status"]["conditions"] = conditions
    return {"InPlacePodVerticalScalingSchedulerPreemption": builder.chance(0.9)}
