"""GpuShare: Filter, Score, the chosen GPUs on the assumed pod, PreBind, restarts, and no GPU above 1,000 milli."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from extender.app import wiring
from extender.cache.cache import Cache
from extender.config import load
from extender.cycle.binding_cycle import make_assumed_pod, run_reserve_plugins
from extender.cycle.decision import ScheduleFailure, ScheduleResult
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.scheduling_cycle import schedule_pod
from extender.framework.api_plan import ApiPlan
from extender.framework.status import Status
from extender.plugins.gpu_share.args import SCORE_POLICIES
from extender.plugins.gpu_share.gpu_request import GPU_INDEX, GPU_MODEL, parse_device_indices
from extender.plugins.gpu_share.plugin import GpuShare
from extender.testing import check_cached_results, make_cluster, make_node, make_pod, run_plugin
from tests.unit.plugins.gpu_share.gpu_builders import gpu_node, shared_pod, whole_pod

HAMI_RESOURCES = ["nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"]
TOO_FEW = ("node(s) didn't have enough free GPUs",)


def test_a_node_without_enough_free_gpus_is_rejected() -> None:
    cluster = make_cluster(
        gpu_node("free"),
        gpu_node("used"),
        make_node("cpu-only", cpu="16"),
        shared_pod("p1", 600, "used", "0"),
        shared_pod("p2", 500, "used", "1"),
        shared_pod("half", 500),
        shared_pod("large", 700),
        whole_pod("two", 2),
        make_pod("no-gpu", cpu="1"),
    )
    assert run_plugin(GpuShare, cluster, "half").rejected == {"cpu-only": TOO_FEW}
    assert run_plugin(GpuShare, cluster, "large").rejected == {"cpu-only": TOO_FEW, "used": TOO_FEW}
    assert run_plugin(GpuShare, cluster, "two").rejected == {"cpu-only": TOO_FEW, "used": TOO_FEW}
    assert run_plugin(GpuShare, cluster, "no-gpu").rejected == {}


def test_free_parts_of_several_gpus_are_not_one_gpu() -> None:
    cluster = make_cluster(
        gpu_node("a"), shared_pod("p1", 500, "a", "0"), shared_pod("p2", 500, "a", "1"), whole_pod("one", 1)
    )
    assert run_plugin(GpuShare, cluster, "one").rejected == {"a": TOO_FEW}


def test_another_gpu_model_than_the_annotation_is_unresolvable() -> None:
    pod = shared_pod("p", 500)
    pod["metadata"]["annotations"][GPU_MODEL] = "G2|A10"
    decision = run_plugin(GpuShare, make_cluster(gpu_node("t4"), gpu_node("g2", model="G2"), pod), "p")
    assert decision.rejected == {"t4": ("node(s) didn't have the requested GPU model",)}
    assert decision.unresolvable == {"t4"}


def test_an_invalid_request_is_rejected_with_its_reason() -> None:
    decision = run_plugin(GpuShare, make_cluster(gpu_node("a"), shared_pod("p", 1500)), "p")
    assert "a pod can request 1 to 1000 milli of each GPU, got 1500" in (decision.message or "")


def test_a_wasteful_pod_waits_for_a_used_gpu_if_few_are_free() -> None:
    """Of 12 GPUs one is free: 8 per cent. A GPU with a pod of 810 milli first on it wastes 190 milli: 19 per cent."""
    used = [shared_pod(f"p{number}", 810, "used", str(number)) for number in range(10)]
    workload = [
        {"cpu": 1000, "gpuMilli": 810, "gpuCount": 1, "weight": 0.4},
        {"cpu": 1000, "gpuMilli": 500, "gpuCount": 1, "weight": 0.2},
        {"cpu": 1000, "gpuMilli": 1000, "gpuCount": 1, "weight": 0.4},
    ]
    pods = [shared_pod("large", 810), shared_pod("half", 500), whole_pod("whole", 1)]
    cluster = make_cluster(
        gpu_node("used", gpus=11, cpu="90"), gpu_node("free", gpus=1), *used, shared_pod("q", 100, "used", "10"), *pods
    )
    args: dict[str, Any] = {"targetWorkload": workload}
    assert run_plugin(GpuShare, cluster, "large", args).feasible_nodes == ("used",)
    assert run_plugin(GpuShare, cluster, "half", args).feasible_nodes == ("used", "free")
    assert run_plugin(GpuShare, cluster, "whole", args).feasible_nodes == ("free",)
    for other in ({"wastefulPodsWait": False}, {"scorePolicy": "FGD"}):
        assert run_plugin(GpuShare, cluster, "large", args | other).feasible_nodes == ("used", "free")


def test_fill_gives_100_to_the_best_node_only() -> None:
    cluster = make_cluster(
        gpu_node("free"), gpu_node("used"), shared_pod("p1", 500, "used", "0"), shared_pod("p2", 500)
    )
    scores = run_plugin(GpuShare, cluster, "p2").scores
    assert scores["used"] == 100
    assert scores["free"] < 100


@pytest.mark.parametrize("policy", SCORE_POLICIES)
def test_cached_results_equal_fresh_ones(policy: str) -> None:
    pods = [shared_pod(f"s{number}", 100 + 90 * number) for number in range(6)]
    cluster = make_cluster(gpu_node("a"), gpu_node("b", gpus=4), *pods, whole_pod("w", 1), make_pod("c", cpu="2"))
    workload = [{"cpu": 1000, "gpuMilli": 400, "gpuCount": 1}, {"cpu": 2000, "gpuMilli": 1000, "gpuCount": 1}]
    check_cached_results(GpuShare, cluster, {"scorePolicy": policy, "targetWorkload": workload})


class Scheduler:
    """The scheduling cycle with GpuShare, without an API server."""

    def __init__(self, cache: Cache, policy: str, learned: bool = False) -> None:
        workload = [{"cpu": 1000, "gpuMilli": 400, "gpuCount": 1}, {"cpu": 2000, "gpuMilli": 1000, "gpuCount": 1}]
        args = {"scorePolicy": policy, "targetWorkload": [] if learned else workload}
        profile = {
            "plugins": {"multiPoint": {"enabled": [{"name": "GpuShare"}]}},
            "pluginConfig": [
                {"name": "GpuShare", "args": args},
                {"name": "NodeResourcesFit", "args": {"ignoredResources": HAMI_RESOURCES}},
            ],
        }
        document = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [profile],
        }
        setup = wiring.build_setup(load.from_builtins(document, "test"))
        self.cache, self.profile, self.runtime = cache, setup.first_profile, wiring.make_runtime()
        self.rng, self.sampler = Random(1), NodeSampler()
        self.plugin = self.profile.plugins["GpuShare"]

    def place(self, pod: Any, *, assume_first: bool) -> tuple[str, ApiPlan | Status] | None:
        """Schedule, assume and reserve a pod; return its node and PreBind's result, or None if it fits nowhere."""
        snapshot = self.cache.snapshot()
        info = snapshot.make_pod_info(pod)
        decision = schedule_pod(info, snapshot, self.profile, self.runtime, self.rng, self.sampler)
        if isinstance(decision, ScheduleFailure):
            assert decision.status.is_rejected, decision.message
            return None
        assert isinstance(decision, ScheduleResult)
        node, state = decision.suggested_host, decision.cycle_state
        if assume_first:
            self.cache.assume(make_assumed_pod(pod, node, self.profile, state), node)
        status = run_reserve_plugins(info, node, self.cache.snapshot(), self.profile, self.runtime, state)
        assert status is None, status
        if not assume_first:
            self.cache.assume(make_assumed_pod(pod, node, self.profile, state), node)
        return node, self.plugin.pre_bind(info, node, snapshot, state.get("GpuShare"))


def sum_by_gpu(cache: Cache) -> Counter[tuple[str, int]]:
    """Return the milli that the pods take of each GPU, from their requests and annotations."""
    taken: Counter[tuple[str, int]] = Counter()
    for pod in cache.assigned_pods.values():
        requests = pod.pod.spec.containers[0].resources.requests
        milli, count = int(requests["alibabacloud.com/gpu-milli"]), int(requests.get("alibabacloud.com/gpu-count", 1))
        indices = parse_device_indices(pod.pod.metadata.annotations)
        assert len(indices) == count
        taken.update({(pod.node_name, index): milli // count for index in indices})
    return taken


@pytest.mark.parametrize("assume_first", [True, False], ids=["schedule", "simulate"])
@pytest.mark.parametrize("policy", SCORE_POLICIES)
def test_no_gpu_is_taken_twice_with_deletions_and_restarts(policy: str, assume_first: bool) -> None:
    rng = Random(3)
    manifests = [
        whole_pod(f"p{n}", rng.choice((1, 2))) if n % 4 == 0 else shared_pod(f"p{n}", rng.randrange(50, 990, 10))
        for n in range(150)
    ]
    for number, manifest in enumerate(manifests):
        manifest["metadata"]["uid"] = f"uid-{number}"
    cluster = make_cluster(*(gpu_node(f"n{n}", gpus=2 + n % 3, cpu="64") for n in range(6)), *manifests)
    cache = cluster.cache
    scheduler = Scheduler(cache, policy)
    placed = 0
    for number in range(len(manifests)):
        if number % 40 == 39:  # a new process reads the assigned pods
            cache = _restart(cache)
            scheduler = Scheduler(cache, policy)
        result = scheduler.place(cluster.pod(f"p{number}"), assume_first=assume_first)
        placed += result is not None
        if rng.random() < 0.4 and cache.assigned_pods:
            cache.remove_pod(rng.choice(sorted(cache.assigned_pods)))
        taken = sum_by_gpu(cache)
        assert max(taken.values(), default=0) <= 1000
        assert all(gpu < 2 + int(node[1:]) % 3 for node, gpu in taken)
    assert placed > 60


def _restart(cache: Cache) -> Cache:
    restarted = Cache()
    for node in cache.snapshot().nodes:
        restarted.add_or_update_node(node)
    for pod in cache.assigned_pods.values():
        restarted.add_or_update_pod(replace(pod.pod, spec=replace(pod.pod.spec, node_name=pod.node_name)))
    return restarted


def test_pre_bind_writes_the_chosen_gpus_through_the_status_subresource() -> None:
    cluster = make_cluster(gpu_node("a", gpus=4), shared_pod("used", 300, "a", "0"), whole_pod("p", 2))
    result = Scheduler(cluster.cache, "FGD").place(cluster.pod("p"), assume_first=True)
    assert result is not None
    node, plan = result
    assert node == "a"
    assert isinstance(plan, ApiPlan)
    (call,) = plan.calls
    assert (call.verb, call.kind, call.namespace, call.name, call.subresource) == (
        "patch",
        "Pod",
        "default",
        "p",
        "status",
    )
    assert call.body["metadata"]["annotations"] == {GPU_INDEX: "1-2"}


def test_the_target_workload_is_learned_from_the_pods_seen() -> None:
    pods = [shared_pod(f"p{n}", 810) for n in range(4)]
    for number, pod in enumerate(pods):
        pod["metadata"]["uid"] = f"uid-{number}"
    cluster = make_cluster(gpu_node("a", gpus=8, cpu="64"), gpu_node("b", gpus=8, cpu="64"), *pods)
    scheduler = Scheduler(cluster.cache, "Fill", learned=True)
    for number in range(4):
        assert scheduler.place(cluster.pod(f"p{number}"), assume_first=True) is not None
    assert [(pod.gpu_milli, pod.weight) for pod in scheduler.plugin._workload.target.pods] == [(810, 1.0)]


def test_gpus_that_changed_since_filter_are_an_error_of_reserve() -> None:
    cluster = make_cluster(gpu_node("a", gpus=1), shared_pod("p", 600), shared_pod("other", 600))
    scheduler = Scheduler(cluster.cache, "BestFit")
    info = cluster.cache.make_pod_info(cluster.pod("p"))
    with cluster.cache.read() as snapshot:
        state = scheduler.plugin.pre_filter(info, snapshot).state
    assert scheduler.place(cluster.pod("other"), assume_first=True) is not None
    snapshot = cluster.cache.snapshot()
    scheduler.plugin.pre_filter(info, snapshot)
    assert scheduler.plugin.make_assumed_pod(cluster.pod("p"), "a", state) is cluster.pod("p")
    status = scheduler.plugin.reserve(info, "a", snapshot, state)
    assert status is not None
    assert status.message == 'the GPUs of node "a" changed'
