"""The page of what pods ask for: amounts, units, who is left out."""

from typing import Any

import pytest

from extender.objects.codec import from_builtins
from extender.objects.pod import Pod
from extender.observe.resource_usage import resource_usage, unit_of


def a_pod(name: str = "web", phase: str = "Running", **spec: Any) -> Pod:
    document = {"metadata": {"namespace": "shop", "name": name}, "spec": spec, "status": {"phase": phase}}
    return from_builtins(document, Pod)


def container(requests: dict[str, str], limits: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": requests, "limits": limits or {}}, **more}


def values(pod: Pod, node: str = "n1") -> dict[tuple[str, str], float]:
    """By metric and resource."""
    found = {}
    for line in "".join(resource_usage([(pod, node)])).splitlines():
        if not line.startswith("#"):
            name, _, rest = line.partition("{")
            found[name.removeprefix("kube_pod_resource_"), rest.split('resource="')[1].split('"')[0]] = float(
                line.rpartition(" ")[2]
            )
    return found


def test_a_line_has_every_label() -> None:
    pod = a_pod(containers=[container({"cpu": "250m"})], schedulerName="default-scheduler", priority=7)
    assert list(resource_usage([(pod, "n1")]))[-1] == (
        'kube_pod_resource_request{namespace="shop",node="n1",pod="web",priority="7",resource="cpu",'
        'scheduler="default-scheduler",unit="cores"} 0.25\n'
    )


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
        "overhead adds to requests, and to limits that there are",
        "the pod's own amounts hold in place of the sums",
        "nothing is not told",
    ],
)
def test_amounts_are_those_of_the_whole_pod(spec: dict[str, Any], amounts: dict[tuple[str, str], float]) -> None:
    assert values(a_pod(**spec)) == amounts


@pytest.mark.parametrize(("phase", "node", "told"), [("Succeeded", "n1", 0), ("Failed", "n1", 0), ("Failed", "", 1)])
def test_pods_that_ended_on_a_node_are_left_out(phase: str, node: str, told: int) -> None:
    assert len(values(a_pod(phase=phase, containers=[container({"cpu": "1"})]), node)) == told


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
def test_units_are_those_of_the_resource(resource: str, unit: str) -> None:
    assert unit_of(resource) == unit


def test_many_pods_come_in_pieces() -> None:
    pods = [(a_pod(f"p{number}", containers=[container({"cpu": "1"})]), "") for number in range(5)]
    pieces = list(resource_usage(pods, batch=2))
    assert [piece.count("kube_pod_resource_request{") for piece in pieces][-3:] == [2, 2, 1]
