"""Pods of equal importance: many on one node that start at the same time, or have not started."""

from random import Random

from tests.oracle.generator.builder import ClusterBuilder


def add_equal_start_times(builder: ClusterBuilder, rng: Random) -> None:
    """Give a node of some scenarios equally important pods, so that Go's sort decides which of them are victims.

    The choices are those of *rng*.
    """
    builder.rng, ordinary = rng, builder.rng
    _add_to_a_node(builder)
    builder.rng = ordinary


def _add_to_a_node(builder: ClusterBuilder) -> None:
    if not builder.nodes or not builder.chance(0.15):
        return
    node = builder.pick(builder.nodes)["metadata"]["name"]
    if builder.chance(0.6):
        _add_pods(builder, node)
    pods = [item for item in builder.items if item["kind"] == "Pod" and "nodeName" in item["spec"]]
    have_others_started = all("startTime" in pod["status"] for pod in pods if pod["spec"]["nodeName"] != node)
    if have_others_started and builder.chance(0.5):  # on several nodes, the latest start would depend on the clock
        for pod in pods:
            if pod["spec"]["nodeName"] == node and builder.chance(0.5):
                pod["status"].pop("startTime", None)


def _add_pods(builder: ClusterBuilder, node: str) -> None:
    """Add so many pods to a node that Go's sort is not stable."""
    seconds = builder.pick((1, 2, 10))
    for number in range(builder.rng.randint(10, 40)):
        requests = {"cpu": builder.pick(("100m", "250m", "500m")), "memory": builder.pick(("64Mi", "256Mi"))}
        spec = {
            "containers": [{"name": "c0", "image": "busybox:1", "resources": {"requests": requests}}],
            "nodeName": node,
            "priority": builder.pick((0, 0, 0, -10)),
            "schedulerName": "default-scheduler",
        }
        status = {"phase": "Running", "startTime": f"2026-02-03T00:00:{builder.rng.randrange(seconds):02}Z"}
        labels = {"labels": builder.pod_labels()}
        namespace = builder.pick(builder.namespaces)
        builder.add("v1", "Pod", f"equal-{number:02}", namespace, metadata=labels, spec=spec, status=status)
