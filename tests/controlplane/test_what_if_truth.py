"""What `extender what-if` foretells happens: real controllers and kube-scheduler carry out random scenarios.

The variables TRUTH_CELLS and TRUTH_SEED change the number of random clusters and the first seed. TRUTH_BATCH of them
share a control plane at a time. A cell agrees if as many pods have a node, wait, and are blocked by a budget as
foretold, and if the waiting pods have the same reasons. Two things are up to chance in a real cluster: the choice
among nodes with equal scores, and the order of pods with equal priority in the queue. So a cell that differs is
foretold again with other choices and orders.
"""

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from random import Random
from time import monotonic, sleep
from typing import Any, Final

import pytest
from msgspec.structs import replace

from extender.analysis.recorded_cluster import Recording, load_cache
from extender.analysis.required_kinds import RECORDED_KINDS
from extender.answers.planning import ScenarioOutcome
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.app.cluster_reader import read_cluster_kinds
from extender.cli.live.cluster_options import ClusterOptions
from extender.planning.what_if import WhatIfRunner
from tests.controlplane.api_client import ApiClient, ApiStatusError
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.replica_sets import CONTROLLERS, create_replica_set, delete_pods, make_ready
from tests.controlplane.truth_cells import Cell, make_cell, make_scenario

CELLS: Final = int(os.environ.get("TRUTH_CELLS", "10"))
FIRST_SEED: Final = int(os.environ.get("TRUTH_SEED", "0"))
BATCH: Final = int(os.environ.get("TRUTH_BATCH", "25"))
CHOICES: Final = 30
"""The number of random choices among equal nodes that are foretold for a cell that differs."""

SETTLE_SECONDS: Final = 5.0
TIMEOUT: Final = 240.0


@dataclass(slots=True)
class CellOutcome:
    """The outcome of a cell by app: the pods with a node, the blocked pods, and the waiting pods by their reasons."""

    placed: Counter[str] = field(default_factory=Counter)
    blocked: Counter[str] = field(default_factory=Counter)
    waiting: Counter[tuple[str, frozenset[str]]] = field(default_factory=Counter)


@pytest.fixture
def plane(control_plane: ControlPlane, api: ApiClient) -> Iterator[ControlPlane]:
    yield control_plane
    delete_pods(control_plane, api)


def test_what_is_foretold_happens(plane: ControlPlane, api: ApiClient) -> None:
    counts: Counter[str] = Counter()
    for start in range(FIRST_SEED, FIRST_SEED + CELLS, BATCH):
        cells = [make_cell(seed) for seed in range(start, min(start + BATCH, FIRST_SEED + CELLS))]
        create_cells(plane, api, cells)
        recording = read_cluster(plane)
        happened = carry_out(plane, api, cells)
        foretold = foretell(recording, cells, 0)
        for cell in cells:
            result = compare(cell, recording, happened[cell.name], foretold[cell.name])
            counts[result] += 1
            if result == "different":
                print(f"{cell.name}: {cell.drain=} {cell.cordon=} {cell.taint=} {cell.scale=}")  # noqa: T201
                print(f"  happened {happened[cell.name]}\n  foretold {foretold[cell.name]}")  # noqa: T201
        remove_cells(plane, api)
    print(f"{CELLS} cells: {dict(counts)}")  # noqa: T201
    assert counts["different"] <= CELLS // 100


def create_cells(plane: ControlPlane, api: ApiClient, cells: Sequence[Cell]) -> None:
    """Create all objects, run the controllers and kube-scheduler, and wait until the waiting pods were tried."""
    for cell in cells:
        for node in cell.nodes:
            api.create(node)
        for app in cell.apps:
            create_replica_set(api, app.name, app.nodes, app.spec)
        for budget in cell.budgets:
            api.create(budget)
    plane.start_controllers(*CONTROLLERS)
    plane.start_kube_scheduler()
    count = sum(len(app.nodes) for cell in cells for app in cell.apps)
    wait_until_settled(api, count)
    budget_count = sum(len(cell.budgets) for cell in cells)
    api.wait_until(
        "PodDisruptionBudget",
        lambda budgets: (
            sum("observedGeneration" in entry.get("status", {}) for entry in budgets.values()) >= budget_count
        ),
        "budgets with a status",
    )


def list_pods(api: ApiClient) -> list[dict[str, Any]]:
    return [pod for pod in json.loads(api.list("Pod"))["items"] if "deletionTimestamp" not in pod["metadata"]]


def get_failure(pod: dict[str, Any]) -> str:
    """Return the message of a pod that kube-scheduler could not place; empty if it was not tried."""
    conditions = pod["status"].get("conditions", ())
    return next((entry["message"] for entry in conditions if entry.get("reason") == "Unschedulable"), "")


def wait_until_settled(api: ApiClient, count: int, last_activity: float = 0.0) -> None:
    """Wait until *count* pods exist, and each has a node or was tried, and nothing changes any more.

    Pods with a node become ready, as their kubelets would let them.
    """
    deadline, settled_since, state = monotonic() + TIMEOUT, last_activity or monotonic(), ""
    while monotonic() - settled_since < SETTLE_SECONDS:
        assert monotonic() < deadline, f"{len(list_pods(api))} of {count} pods; {state}"
        sleep(0.3)
        pods = list_pods(api)
        for pod in pods:
            if pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending":
                make_ready(api, {"kind": "Pod", **pod})
        new_state = json.dumps(
            [[pod["metadata"]["uid"], pod["spec"].get("nodeName"), get_failure(pod)] for pod in pods]
        )
        is_done = len(pods) == count and all(pod["spec"].get("nodeName") or get_failure(pod) for pod in pods)
        if new_state != state or not is_done:
            settled_since, state = monotonic(), new_state


def read_cluster(plane: ControlPlane) -> Recording:
    return read_cluster_kinds(ClusterOptions(str(plane.write_kubeconfig())).credential_source, RECORDED_KINDS)


def foretell(
    recording: Recording, cells: Sequence[Cell], seed: int, *, waiting_pods_last: bool = False
) -> dict[str, CellOutcome]:
    """Return the outcome of each cell, with the waiting pods at the beginning of the queue, or after evicted pods."""
    setup, scenario = wiring.build_setup(), make_scenario(cells)
    apps = {obj.key: obj.metadata.labels["app"] for obj in recording.objects if isinstance(obj, Pod)}
    if waiting_pods_last:
        waiting_pods = tuple(obj for obj in recording.objects if isinstance(obj, Pod) and not obj.spec.node_name)
        recording = Recording(tuple(obj for obj in recording.objects if obj not in waiting_pods))
        scenario = dataclasses.replace(scenario, pods=waiting_pods)
    cache = load_cache(recording, setup.gates)
    result = WhatIfRunner(cache, setup.profiles, wiring.make_runtime()).run(scenario, seed=seed)
    return collect_foretold(result, apps, cells)


def collect_foretold(result: ScenarioOutcome, apps: dict[str, str], cells: Sequence[Cell]) -> dict[str, CellOutcome]:
    outcomes = {cell.name: CellOutcome() for cell in cells}
    totals = Counter({app.name: cell.scale.get(app.name, len(app.nodes)) for cell in cells for app in cell.apps})
    for entry in result.waiting:
        app = apps.get(entry.pod) or entry.pod.partition("/")[2].rpartition("-new-")[0]
        outcomes[get_cell(app)].waiting[app, frozenset(entry.reasons)] += 1
        totals[app] -= 1
    for blocked in result.blocked:
        outcomes[get_cell(apps[blocked.pod])].blocked[apps[blocked.pod]] += 1
    for app, count in totals.items():
        outcomes[get_cell(app)].placed[app] = count
    return outcomes


def get_cell(app: str) -> str:
    return app.rpartition("-")[0]


def carry_out(plane: ControlPlane, api: ApiClient, cells: Sequence[Cell]) -> dict[str, CellOutcome]:
    """Cordon, taint, scale and evict. Wait until nothing changes any more, also after a restart of kube-scheduler."""
    for cell in cells:
        for name in (*cell.cordon, *cell.drain):
            api.patch({"kind": "Node", "metadata": {"name": name}}, {"spec": {"unschedulable": True}})
        for name in cell.taint:
            taint = {"key": "dedicated", "value": "x", "effect": "NoExecute"}
            api.patch({"kind": "Node", "metadata": {"name": name}}, {"spec": {"taints": [taint]}})
            delete_intolerant_pods(api, name, taint["key"])
        for name, count in cell.scale.items():
            meta = {"name": name, "namespace": "default"}
            api.patch({"kind": "ReplicaSet", "metadata": meta}, {"spec": {"replicas": count}})
    drained = [node for cell in cells for node in cell.drain]
    total = sum(cell.scale.get(app.name, len(app.nodes)) for cell in cells for app in cell.apps)
    while evict_all(api, drained):
        wait_until_settled(api, total)
    wait_until_settled(api, total)
    # The last attempt of a waiting pod may be older than the last change: a new process tries all of them again.
    plane.stop_other_programs()
    plane.start_controllers(*CONTROLLERS)
    plane.start_kube_scheduler()
    wait_until_tried_again(api)
    wait_until_settled(api, total)
    return collect_happened(api, cells, drained)


def delete_intolerant_pods(api: ApiClient, node: str, key: str) -> None:
    """Delete the pods that do not tolerate a new taint with the effect NoExecute.

    The taint eviction controller does this. It needs the node lifecycle controller, which would taint nodes without a
    kubelet.
    """
    for pod in sorted(list_pods(api), key=lambda pod: pod["metadata"]["name"]):
        tolerations = {entry.get("key") for entry in pod["spec"].get("tolerations", ())}
        if pod["spec"].get("nodeName") == node and key not in tolerations:
            api.delete({"kind": "Pod", **pod})


def evict_all(api: ApiClient, nodes: Sequence[str]) -> int:
    """Ask the eviction API for all pods of *nodes*; return the number of evictions."""
    count = 0
    pods = sorted(list_pods(api), key=lambda pod: pod["metadata"]["name"])
    for pod in (pod for node in nodes for pod in pods if pod["spec"].get("nodeName") == node):
        meta = {"name": pod["metadata"]["name"], "namespace": "default"}
        path = f"/api/v1/namespaces/default/pods/{meta['name']}/eviction"
        try:
            api.call("POST", path, {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta})
        except ApiStatusError as error:
            if error.status != 429:
                raise
        else:
            count += 1
    return count


def wait_until_tried_again(api: ApiClient) -> None:
    """Create a pod that fits nowhere, and wait until it was tried: after the pods that waited before."""
    spec = {"nodeSelector": {"example.com/none": "x"}, "containers": [{"name": "app", "image": "app"}]}
    sleep(SETTLE_SECONDS)  # until the new process has listed the pods
    last = api.create({"kind": "Pod", "metadata": {"name": "last", "namespace": "default"}, "spec": spec})
    api.wait_for(last, lambda pod: bool(get_failure(pod)), "an attempt to place the last pod")
    api.delete(last)


def collect_happened(api: ApiClient, cells: Sequence[Cell], drained: Sequence[str]) -> dict[str, CellOutcome]:
    outcomes = {cell.name: CellOutcome() for cell in cells}
    for pod in list_pods(api):
        app = pod["metadata"]["labels"]["app"]
        outcome = outcomes[get_cell(app)]
        node = pod["spec"].get("nodeName")
        if not node:
            outcome.waiting[app, parse_reasons(get_failure(pod))] += 1
            continue
        outcome.placed[app] += 1
        outcome.blocked[app] += node in drained
    return outcomes


def parse_reasons(message: str) -> frozenset[str]:
    """Return the reasons of a message such as `0/5 nodes are available: 2 Insufficient cpu, 3 Too many pods. ...`."""
    reasons = message.partition(": ")[2].partition(". ")[0].removesuffix(".")
    return frozenset(reason.partition(" ")[2] for reason in reasons.split(", "))


def compare(cell: Cell, recording: Recording, happened: CellOutcome, foretold: CellOutcome) -> str:
    """Return how the outcomes agree: in each app, in their numbers and reasons, only with another choice, or not."""
    if is_same(happened, foretold):
        return "same in each app"
    if summarize(happened) == summarize(foretold):
        return "same numbers and reasons"
    objects = select_objects(cell, recording)
    for seed in range(1, CHOICES):
        shuffled = list(objects)
        Random(seed).shuffle(shuffled)
        variants = (Recording(objects), Recording(tuple(rename_pods(shuffled, seed))))
        for variant, is_last in product(variants, (False, True)):
            outcome = foretell(variant, [cell], seed, waiting_pods_last=is_last)[cell.name]
            if summarize(outcome) == summarize(happened):
                return "same with another choice among equal nodes or pods"
    return "different"


def select_objects(cell: Cell, recording: Recording) -> tuple[Any, ...]:
    """Return the objects of one cell, and one node of another cell, which the node selectors exclude."""
    names = {node["metadata"]["name"] for node in cell.nodes}
    apps = {app.name for app in cell.apps}
    other_nodes = [obj for obj in recording.objects if isinstance(obj, Node) and obj.metadata.name not in names][:1]
    return (
        *(obj for obj in recording.objects if isinstance(obj, Node) and obj.metadata.name in names),
        *other_nodes,
        *(obj for obj in recording.objects if isinstance(obj, Pod) and obj.metadata.labels.get("app") in apps),
        *(obj for obj in recording.objects if not isinstance(obj, Node | Pod)),
    )


def rename_pods(objects: Sequence[Any], seed: int) -> Iterator[Any]:
    """Yield the objects with other names of pods, because pods leave a node in the order of their names."""
    rng = Random(seed)
    for obj in objects:
        if isinstance(obj, Pod):
            yield replace(obj, metadata=replace(obj.metadata, name=f"{rng.randrange(10**6):06}-{obj.metadata.name}"))
        else:
            yield obj


def is_same(happened: CellOutcome, foretold: CellOutcome) -> bool:
    return (
        +happened.placed == +foretold.placed
        and +happened.blocked == +foretold.blocked
        and happened.waiting == foretold.waiting
    )


def summarize(outcome: CellOutcome) -> tuple[int, int, int, frozenset[str]]:
    """Return the numbers of pods with a node, of blocked and of waiting pods, and all reasons of the waiting pods."""
    reasons = frozenset(reason for _, pod_reasons in outcome.waiting for reason in pod_reasons)
    return outcome.placed.total(), outcome.blocked.total(), outcome.waiting.total(), reasons


def remove_cells(plane: ControlPlane, api: ApiClient) -> None:
    """Delete the objects of the cells, so that the next ones start with an empty cluster."""
    plane.stop_other_programs()
    api.delete_created()
    delete_pods(plane, api)
