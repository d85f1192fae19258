"""The page of pod resources: amounts, units and omitted pods."""

from typing import Any

import pytest

from extender.api.codec import from_builtins
from extender.api.kinds.pod import Pod
from extender.metrics.pod_resources import get_resource_unit, render_pod_resources


def make_pod(name: str = "web", phase: str = "Running", **spec: Any) -> Pod:
    raw = {"metadata": {"namespace": "shop", "name": name}, "spec": spec, "status": {"phase": phase}}
    return from_builtins(raw, Pod)


def container(requests: dict[str, str], limits: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": requests, "limits": limits or {}}, **more}


def values(pod: Pod, node: str = "n1") -> dict[tuple[str, str], float]:
    """Return the amounts by metric and resource."""
    amounts = {}
    for line in "".join(render_pod_resources([(pod, node)])).splitlines():
        if not line.startswith("#"):
            name, _, rest = line.partition("{")
            amounts[name.removeprefix("kube_pod_resource_"), rest.split('resource="')[1].split('"')[0]] = float(
                line.rpartition(" ")[2]
            )
    return amounts


def test_a_line_has_every_label() -> None:
    pod = make_pod(containers=[container({"cpu": "250m"})], schedulerName="default-scheduler", priority=7)
    assert list(render_pod_resources([(pod, "n1")]))[-1] == (
        'kube_pod_resource_request{namespace="shop",node="n1",pod="web",priority="7",resource="cpu",'
        'scheduler="default-scheduler",unit="cores"} 0.25\n'
    )


@pytest.mark.parametrize("amount", ["1e999999", "1" * 5000, "12345678901234567890e300"])
def test_an_amount_beyond_floating_point_numbers_is_infinite(amount: str) -> None:
    pod = make_pod(containers=[container({"cpu": amount, "memory": "1Ki"})])
    (cpu, memory) = list(render_pod_resources([(pod, "n1")]))[-1].splitlines()
    assert (cpu.rpartition(" ")[2], memory.rpartition(" ")[2]) == ("+Inf", "1024.0")


@pytest.mark.parametrize(
    ("spec", "amounts"),
    [
        (
            {"containers": [container({"cpu": "1"}, {"cpu": "2"}), container({"cpu": "500m", "memory": "1Ki"})]},
            {("limit", "cpu"): 2.0, ("request", "cpu"): 1.5, ("request", "memory"): 1024.0},
        ),
        (
            {"containers": [container({"cpu": "1"})], "initContainers": [container({"cpu": "3"})]},
            {("request", "cpu"): 3.0},
        ),
        (
            {
                "containers": [container({"cpu": "1"})],
                "initContainers": [container({"cpu": "2"}, restartPolicy="Always"), container({"cpu": "4"})],
            },
            {("request", "cpu"): 6.0},
        ),
        (
            {"containers": [container({"cpu": "1"}, {"memory": "1k"})], "overhead": {"cpu": "1", "memory": "1k"}},
            {("limit", "memory"): 2000.0, ("request", "cpu"): 2.0, ("request", "memory"): 1000.0},
        ),
        (
            {"containers": [container({"cpu": "1"})], "resources": {"requests": {"cpu": "5"}, "limits": {"cpu": "6"}}},
            {("limit", "cpu"): 6.0, ("request", "cpu"): 5.0},
        ),
        ({"containers": [container({"cpu": "0"})]}, {}),
    ],
    ids=[
        "containers add up",
        "the peak of init containers counts if it is more",
        "sidecars run beside init containers",
        "overhead adds to requests and to existing limits",
        "the pod's own amounts replace the sums",
        "amounts of zero are omitted",
    ],
)
def test_amounts_are_the_sum_for_the_whole_pod(spec: dict[str, Any], amounts: dict[tuple[str, str], float]) -> None:
    assert values(make_pod(**spec)) == amounts


@pytest.mark.parametrize(("phase", "node", "count"), [("Succeeded", "n1", 0), ("Failed", "n1", 0), ("Failed", "", 1)])
def test_pods_that_finished_on_a_node_are_omitted(phase: str, node: str, count: int) -> None:
    assert len(values(make_pod(phase=phase, containers=[container({"cpu": "1"})]), node)) == count


@pytest.mark.parametrize(
    ("resource", "unit"),
    [
        ("cpu", "cores"),
        ("memory", "bytes"),
        ("ephemeral-storage", "bytes"),
        ("hugepages-2Mi", "bytes"),
        ("attachable-volumes-csi-x", "integer"),
        ("example.com/gpu", ""),
    ],
)
def test_a_unit_depends_on_the_resource(resource: str, unit: str) -> None:
    assert get_resource_unit(resource) == unit


def test_many_pods_are_rendered_in_chunks() -> None:
    pods = [(make_pod(f"p{number}", containers=[container({"cpu": "1"})]), "") for number in range(5)]
    chunks = list(render_pod_resources(pods, batch_size=2))
    assert [chunk.count("kube_pod_resource_request{") for chunk in chunks][-3:] == [2, 2, 1]
