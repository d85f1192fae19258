"""Composite pod groups on a real API server: kube-scheduler and our scheduler have the same expected result."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.controlplane.api_client import ApiClient, JsonObject, find_condition
from tests.controlplane.conftest import running_control_plane
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.programs import RELEASE
from tests.controlplane.resources import COMPOSITE_POD_GROUP_VERSION, POD_GROUP_VERSION
from tests.controlplane.scheduler_processes import make_configuration, start_scheduler

GATES = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true,CompositePodGroup=true"

pytestmark = pytest.mark.skipif(RELEASE == "1.36", reason="1.36 has no composite pod groups")


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """Run an API server with composite pod groups."""
    versions = f"{POD_GROUP_VERSION}=true,{COMPOSITE_POD_GROUP_VERSION}=true"
    flags = (f"--feature-gates={GATES}", f"--runtime-config={versions}")
    with running_control_plane(tmp_path_factory.mktemp("composites"), request.session, *flags) as plane:
        yield plane


@pytest.fixture(scope="module", params=["kube-scheduler", "extender"])
def scheduler(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[str]:
    """Run one of the schedulers."""
    gates = f"--feature-gates={GATES}"
    if request.param == "kube-scheduler":
        process = control_plane.start_kube_scheduler({}, gates)
    else:
        process = start_scheduler(control_plane, make_configuration(control_plane), gates, "--secure-port=0")
    yield request.param
    control_plane.stop_program(process)


@pytest.fixture
def client(control_plane: ControlPlane) -> Iterator[ApiClient]:
    """Return a client whose objects are deleted after the test; the scheduler keeps running."""
    with control_plane.client() as client:
        yield client
        client.delete_created()
        client.wait_until("Pod", lambda objects: not objects, "an empty cluster")


@dataclass(frozen=True, slots=True)
class Case:
    """A gang of child groups, whose pods each request the two CPUs of a node.

    Attributes:
        racks: the rack of each node, a letter.
        min_group_count: the minGroupCount of the root.
        groups: the pods and the minCount of each child group, by name.
        root_spec: additional fields of the root's spec.
        bound: the racks of the bound pods of each child group, sorted.
        conditions: status and message of the condition of each child group.
    """

    racks: str
    min_group_count: int
    groups: Mapping[str, tuple[int, int]]
    bound: Mapping[str, str]
    conditions: Mapping[str, tuple[str, str]]
    root_spec: Mapping[str, Any]


NO_VICTIMS = "pod group preemption: No preemption victims found for incoming preemptor"
ONE_RACK = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}
FIRST_OF_ONE = "pod group is unschedulable, 0/1 placements are available, first placement status: "


def too_few(count: int, scheduled: int) -> str:
    return f"{FIRST_OF_ONE}minCount ({count}) cannot be satisfied: {scheduled} scheduled, 0 remaining"


BOUND = ("True", "")
TWO_GROUPS = {"x": (2, 2), "y": (1, 1)}

CASES = {
    "a tree that fits is bound": Case("aaa", 2, TWO_GROUPS, {"x": "aa", "y": "a"}, {"x": BOUND, "y": BOUND}, {}),
    "no pod is bound if too few child groups fit": Case(
        "ab",
        2,
        TWO_GROUPS,
        {"x": "", "y": ""},
        {
            "x": ("False", f"{too_few(2, 1)}, {NO_VICTIMS}, {NO_VICTIMS}"),
            "y": ("False", f"{too_few(1, 0)}, {NO_VICTIMS}"),
        },
        {},
    ),
    "a child group that does not fit waits alone": Case(
        "ab",
        1,
        TWO_GROUPS,
        {"x": "ab", "y": ""},
        {"x": BOUND, "y": ("False", f"{too_few(1, 0)}, {NO_VICTIMS}")},
        {},
    ),
    "the whole tree is in the only rack that fits it": Case(
        "abbb", 2, TWO_GROUPS, {"x": "bb", "y": "b"}, {"x": BOUND, "y": BOUND}, ONE_RACK
    ),
}


def make_group(kind: str, name: str, policy: JsonObject, spec: Mapping[str, Any]) -> JsonObject:
    reference = {"workloadName": "workload", "templateName": "template"}
    meta = {"name": name, "namespace": "default"}
    return {"kind": kind, "metadata": meta, "spec": {"schedulingPolicy": policy, "workloadRef": reference, **spec}}


def make_pod(name: str, group: str) -> JsonObject:
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": "2"}}}
    spec = {"containers": [container], "schedulingGroup": {"podGroupName": group}}
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def create_nodes(api: ApiClient, racks: str) -> None:
    capacity = {"cpu": "2", "memory": "8Gi", "pods": "10"}
    for number, rack in enumerate(racks):
        meta = {"name": f"n{number}", "labels": {"rack": rack}}
        api.create({"kind": "Node", "metadata": meta, "status": {"capacity": capacity, "allocatable": capacity}})


def create_pods(api: ApiClient, case: Case) -> None:
    for name, (count, _) in case.groups.items():
        for number in range(count):
            api.create(make_pod(f"{name}{number}", name))


def create_tree(api: ApiClient, case: Case) -> None:
    """Create the child groups, then the root."""
    for name, (_, min_count) in case.groups.items():
        spec = {"parentCompositePodGroupName": "root"}
        api.create(make_group("PodGroup", name, {"gang": {"minCount": min_count}}, spec))
    policy = {"gang": {"minGroupCount": case.min_group_count}}
    api.create(make_group("CompositePodGroup", "root", policy, case.root_spec))


def wait_for_result(api: ApiClient, case: Case) -> None:
    def summarize_groups(groups: Mapping[str, JsonObject]) -> dict[str, tuple[str, str]]:
        conditions = {
            key.partition("/")[2]: find_condition(group, "PodGroupInitiallyScheduled") for key, group in groups.items()
        }
        return {name: (each.get("status", ""), each.get("message", "")) for name, each in conditions.items()}

    def summarize_pods(pods: Mapping[str, JsonObject]) -> dict[str, str]:
        nodes = {key.partition("/")[2]: pod["spec"].get("nodeName", "") for key, pod in pods.items()}
        racks = {name: case.racks[int(node[1:])] if node else "" for name, node in nodes.items()}
        return {name: "".join(sorted(racks[pod] for pod in racks if pod[0] == name)) for name in case.groups}

    api.wait_until("PodGroup", lambda groups: summarize_groups(groups) == case.conditions, f"{case.conditions}")
    api.wait_until("Pod", lambda pods: summarize_pods(pods) == case.bound, f"{case.bound}")


@pytest.mark.usefixtures("scheduler")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_tree_is_scheduled_or_rejected_by_its_policies(client: ApiClient, case: Case) -> None:
    create_nodes(client, case.racks)
    create_tree(client, case)
    create_pods(client, case)
    wait_for_result(client, case)


@pytest.mark.usefixtures("scheduler")
def test_pods_that_precede_the_groups_of_their_tree_are_bound_after_the_last_group_is_created(
    client: ApiClient,
) -> None:
    case = CASES["a tree that fits is bound"]
    create_nodes(client, case.racks)
    create_pods(client, case)
    create_tree(client, case)
    wait_for_result(client, case)


@pytest.mark.usefixtures("scheduler")
def test_a_tree_evicts_the_pods_of_another_tree_together(client: ApiClient) -> None:
    """One node suffices, but the pods of the other tree may only be evicted together."""
    for name, value in {"high": 1000, "low": 10}.items():
        client.create({"kind": "PriorityClass", "metadata": {"name": name}, "value": value})
    create_nodes(client, "ab")
    low, high = {"priorityClassName": "low"}, {"priorityClassName": "high"}
    client.create(make_group("CompositePodGroup", "low", {"basic": {}}, {**low, "disruptionMode": {"all": {}}}))
    client.create(make_group("CompositePodGroup", "root", {"basic": {}}, high))
    for name, parent, spec in (("p", "low", low), ("q", "low", low), ("x", "root", high)):
        client.create(make_group("PodGroup", name, {"basic": {}}, {"parentCompositePodGroupName": parent, **spec}))
    for number, group in enumerate("pq"):
        pod = make_pod(f"{group}0", group)
        running = client.create({**pod, "spec": {**pod["spec"], "nodeName": f"n{number}", **low}})
        client.patch(running, {"status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}}, "status")
    preemptor = make_pod("x0", "x")
    client.create({**preemptor, "spec": {**preemptor["spec"], **high}})

    def list_evicted(pods: Mapping[str, JsonObject]) -> list[str]:
        return sorted(key for key, pod in pods.items() if pod["metadata"].get("deletionTimestamp"))

    victims = ["default/p0", "default/q0"]
    pods = client.wait_until("Pod", lambda pods: list_evicted(pods) == victims, "the evictions")
    messages = {find_condition(pods[key], "DisruptionTarget")["message"] for key in victims}
    assert messages == {"default-scheduler: preempting to accommodate a higher priority compositepodgroup"}
    for key in victims:
        client.delete(pods[key])
