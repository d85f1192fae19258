"""GPUs of resource claims: the scores of what the allocator leaves, and pods that request GPUs in two ways."""

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from extender.api.kinds.devices import ResourceClaim
from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.config import load
from extender.cycle.binding_cycle import make_assumed_pod, run_reserve_plugins
from extender.cycle.decision import ScheduleResult
from extender.cycle.explain_pod import explain_pod
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.scheduling_cycle import schedule_pod
from extender.plugins.gpu_share.claimed_gpus import ClaimedGpus, make_request
from extender.plugins.gpu_share.gpu_request import NO_GPU, GpuRequest
from extender.plugins.gpu_share.plugin import GpuShare
from extender.testing import Cluster, PluginDecision, make_cluster, make_node, run_plugin, run_profile
from tests.unit.dra.builders import make_allocator
from tests.unit.plugins.gpu_share.claim_builders import (
    DRIVER,
    claim,
    claim_pod,
    device_class,
    device_slice,
    gpu_nodes,
    memory_claim,
    partitioned_gpu,
    share,
    shared_device,
)
from tests.unit.plugins.gpu_share.gpu_builders import gpu_node, shared_pod

ONLY_CLAIMS = ("node(s) had GPUs that only resource claims can allocate",)
MIXED = ("node(s) had GPUs for resource claims that pods without claims use",)
WORKLOAD = [
    {"cpu": 1000, "gpuMilli": 500, "gpuCount": 1, "weight": 0.5},
    {"cpu": 1000, "gpuMilli": 1000, "gpuCount": 1, "weight": 0.5},
]


def make_configuration(policy: str = "FGD", **args: Any) -> dict[str, Any]:
    """Return a configuration with the default plugins and GpuShare."""
    options = {
        "scorePolicy": policy,
        "targetWorkload": WORKLOAD,
        "dynamicResources": [{"driver": DRIVER, "resource": "memory"}],
        **args,
    }
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": "GpuShare"}]}},
        "pluginConfig": [{"name": "GpuShare", "args": options}],
    }
    document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return {**document, "profiles": [profile]}


def decide(cluster: Cluster, pod: str, policy: str = "FGD", **args: Any) -> PluginDecision:
    """Run the default plugins and GpuShare for *pod*."""
    return run_profile(make_configuration(policy, **args), cluster, pod)


def score(cluster: Cluster, pod: str, policy: str = "FGD", **args: Any) -> dict[str, int]:
    """Return the raw scores of GpuShare."""
    return dict(decide(cluster, pod, policy, **args).raw_scores["GpuShare"])


def make_two_nodes(*objects: Any) -> Cluster:
    """Return a cluster with two nodes of two GPUs; half of the first GPU of `used` is taken."""
    taken = memory_claim("taken", "40Gi", share("gpu-0", "40Gi"), node="used")
    return make_cluster(*gpu_nodes("free", "used"), taken, *objects)


def test_fgd_scores_the_fragmentation_that_the_allocator_leaves() -> None:
    """100 / (1 + exp(growth of the fragmentation in GPUs)), truncated; before and after, in milli of the node:

    free: two free GPUs. The pod of 500 milli can use 2000, the pod of a GPU 2000: fragmentation 0. After 40Gi: 1500
    free; a half can use 1500, a whole 1000, so 1500 - 1250 = 250. The score is 100 / (1 + e^0.25) = 43.
    used: 1500 free, fragmentation 250. After: 1000 and nothing: a half and a whole can use it: 0. The score is
    100 / (1 + e^-0.25) = 56.
    """
    cluster = make_two_nodes(memory_claim("half", "40Gi"), claim_pod("p", "half"))
    assert score(cluster, "p") == {"free": 43, "used": 56}


def test_the_device_of_the_allocator_counts_and_not_the_best_one() -> None:
    """The allocator takes the first device that fits, which is free, although the second one is half used."""
    taken = memory_claim("taken", "40Gi", share("gpu-1", "40Gi"), node="n")
    cluster = make_cluster(*gpu_nodes("n"), taken, memory_claim("half", "40Gi"), claim_pod("p", "half"))
    # Before: 1000 and 500 free, fragmentation 250. After: 500 and 500: 1000 - 0.5 * 1000 - 0 = 500.
    assert score(cluster, "p") == {"n": 43}


def test_partitions_score_by_the_counters_that_are_left() -> None:
    """A quarter of a free GPU leaves 750 milli: fragmentation 750 - 375 = 375, 100 / (1 + e^0.375) = 40.

    With a half taken, 500 are left before: 500 - 250 = 250; 250 after, which no pod can use: 250. The score is 50.
    """
    quarter = {"selectors": [{"cel": {"expression": f"device.attributes['{DRIVER}'].size == 'quarter'"}}]}
    nodes = [make_node("free"), make_node("used"), *partitioned_gpu("free"), *partitioned_gpu("used"), device_class()]
    taken = claim("taken", {}, {"device": "half-0"}, node="used")
    cluster = make_cluster(*nodes, taken, claim("quarter", quarter), claim_pod("p", "quarter"))
    assert score(cluster, "p") == {"free": 40, "used": 50}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        # GPUs: 2000 of 8000 milli, 500 taken; CPU: 16 of 128, 1 taken.
        # 100 * (1 - (16/128 * 1/128 + 2000/8000 * 500/8000) / 2) = 99.2; 1500 instead of 2000: 99.5
        pytest.param("DotProd", {"free": 99, "used": 99}, id="DotProd"),
        # 100 * (1 - 15/128/2 - 1500/8000/2) = 84.8; 1000 instead of 1500: 87.9
        pytest.param("BestFit", {"free": 84, "used": 87}, id="BestFit"),
        # 25 * 6000/8000 = 18.75, floor 18; no pod: + 25. 25 * 6500/8000 = 20.3; also parts of a GPU: + 75
        pytest.param("GpuClustering", {"free": 43, "used": 95}, id="GpuClustering"),
        # an unused node: 33 - 2; a part of a GPU with 500 free: 100 - 50 / 10
        pytest.param("GpuPacking", {"free": 31, "used": 95}, id="GpuPacking"),
    ],
)
def test_the_published_policies_score_the_same_states(policy: str, expected: dict[str, int]) -> None:
    cluster = make_two_nodes(memory_claim("half", "40Gi"), claim_pod("p", "half"))
    assert score(cluster, "p", policy) == expected


def test_fill_prefers_the_rest_of_a_used_gpu() -> None:
    cluster = make_two_nodes(memory_claim("half", "40Gi"), claim_pod("p", "half"))
    scores = decide(cluster, "p", "Fill").normalized_scores["GpuShare"]
    assert (scores["used"], scores["free"] < 100) == (100, True)


def test_an_allocated_claim_takes_nothing_more() -> None:
    """The pod takes only a CPU of either node: the fragmentation stays as it is."""
    taken = memory_claim("shared", "40Gi", share("gpu-0", "40Gi"), node="a")
    cluster = make_cluster(*gpu_nodes("a", "b"), taken, claim_pod("p", "shared"))
    assert score(cluster, "p") == {"a": 50, "b": 50}


def test_a_pod_without_claims_is_rejected_where_claims_allocate_the_gpus() -> None:
    cluster = make_cluster(
        gpu_node("own", gpus=2),
        gpu_node("both", gpus=2),
        device_slice("both", [shared_device("gpu-0")]),
        device_class(),
        shared_pod("p", 500),
    )
    decision = decide(cluster, "p")
    assert decision.rejected == {"both": ONLY_CLAIMS}
    assert decision.unresolvable == {"both"}


def test_a_pod_with_claims_is_rejected_beside_pods_that_use_gpus_without_claims() -> None:
    nic = {"driver": "nic.example.com", "nodeName": "mixed", "devices": [{"name": "nic-0"}]}
    nic_slice = device_slice("mixed", [], name="nics")
    nic_slice["spec"] |= nic | {"pool": {"name": "nics", "generation": 1, "resourceSliceCount": 1}}
    nic_class = device_class("nic")
    nic_class["spec"]["selectors"][0]["cel"]["expression"] = "device.driver == 'nic.example.com'"
    cluster = make_cluster(
        gpu_node("mixed", gpus=2),
        device_slice("mixed", [shared_device("gpu-0")]),
        nic_slice,
        device_class(),
        nic_class,
        shared_pod("old", 300, "mixed", "0"),
        memory_claim("half", "40Gi"),
        claim("nic", {"deviceClassName": "nic"}),
        claim_pod("gpu", "half"),
        claim_pod("network", "nic"),
    )
    decision = decide(cluster, "gpu")
    assert decision.rejected == {"mixed": MIXED}
    assert decision.unresolvable == frozenset()
    assert decide(cluster, "network").feasible_nodes == ("mixed",)


def test_a_pod_that_requests_gpus_in_both_ways_fits_nowhere() -> None:
    pod = claim_pod("p", "half", **{"alibabacloud.com/gpu-milli": "500"})
    own = gpu_node("own", gpus=2)
    cluster = make_cluster(*gpu_nodes("claims"), own, memory_claim("half", "40Gi"), pod)
    decision = decide(cluster, "p")
    assert decision.feasible_nodes == ()
    assert decision.rejected_by == {"claims": "NodeResourcesFit", "own": "DynamicResources"}


def test_without_the_option_claims_do_not_matter() -> None:
    cluster = make_two_nodes(memory_claim("half", "40Gi"), claim_pod("p", "half"))
    decision = decide(cluster, "p", dynamicResources=[])
    assert decision.feasible_nodes == ("free", "used")
    assert decision.raw_scores["GpuShare"] == {"free": 50, "used": 50}


def test_the_option_needs_the_plugin_dynamic_resources() -> None:
    cluster = make_cluster(*gpu_nodes("n"), shared_pod("p", 500))
    with pytest.raises(AssertionError, match="option dynamicResources of GpuShare needs the plugin DynamicResources"):
        run_plugin(GpuShare, cluster, "p", {"dynamicResources": [{"driver": DRIVER}]})


def test_the_learned_workload_contains_what_claims_take() -> None:
    """Half of a GPU is on the first node, a quarter of two GPUs on the second."""
    quarters = [share("gpu-0", "20Gi"), share("gpu-1", "20Gi")]
    cluster = make_cluster(
        *gpu_nodes("a", "b"),
        memory_claim("half", "40Gi", share("gpu-0", "40Gi"), node="a"),
        memory_claim("quarters", "20Gi", *quarters, node="b"),
        memory_claim("pending", "10Gi"),
        claim_pod("p", "half", node="a"),
        claim_pod("q", "quarters", node="b"),
        claim_pod("r", "pending"),
        claim_pod("s", "missing"),
        claim_pod("t"),
    )
    gpus = ClaimedGpus({DRIVER: "memory"}, make_shared_state())
    snapshot = cluster.cache.snapshot()
    assert gpus.sync(snapshot)
    requests = {name: gpus.find_request(cluster.pod(name), snapshot) for name in "pqrst"}
    assert requests == {"p": GpuRequest(500, 1), "q": GpuRequest(250, 2), "r": None, "s": None, "t": NO_GPU}


def make_shared_state() -> dict[str, Any]:
    """Return the state that the plugins of a profile with DynamicResources share."""
    return {"DynamicResources": make_allocator({"DRAConsumableCapacity": True})}


def test_unequal_parts_count_as_the_largest() -> None:
    assert make_request([0, 200, 700]) == GpuRequest(700, 2)
    assert make_request([0, 0]) == NO_GPU


@pytest.mark.parametrize("policy", ["FGD", "Fill", "GpuPacking"])
def test_cached_results_equal_fresh_ones_while_claims_come_and_go(policy: str) -> None:
    """Pods with claims, with parts of GPUs and with CPU only are placed; claims are released without their pods."""
    sizes = [5, 20, 40, 60, 80]
    pods: list[dict[str, Any]] = []
    for number in range(24):
        pods.append(claim_pod(f"claims-{number}", f"c{number}"))
        pods.append(shared_pod(f"part-{number}", 100 * (1 + number % 9), cpu="100m"))
        pods.append(claim_pod(f"cpu-{number}"))
    claims = [memory_claim(f"c{number}", f"{sizes[number % 5]}Gi") for number in range(24)]
    cluster = make_cluster(*gpu_nodes("a", "b", "c"), gpu_node("own", gpus=3), *claims, *pods)
    setup = wiring.build_setup(load.from_builtins(make_configuration(policy), "test"))
    cached_runtime, fresh_runtime = wiring.make_runtime(), wiring.make_runtime(cache_results=False)
    cache, profile, rng, sampler = cluster.cache, setup.first_profile, Random(3), NodeSampler()
    placed: list[Pod] = []
    for pod in list(cluster.pods.values()):
        info = cache.make_pod_info(pod)
        with cache.read() as snapshot:
            fresh = explain_pod(info, snapshot, profile, fresh_runtime)
            cached = explain_pod(info, snapshot, profile, cached_runtime)
            decision = schedule_pod(info, snapshot, profile, cached_runtime, rng, sampler)
        assert (fresh.ranking is None) == (cached.ranking is None)
        if fresh.ranking is not None and cached.ranking is not None:
            expected = fresh.ranking.scores_by_plugin["GpuShare"].normalized
            assert cached.ranking.scores_by_plugin["GpuShare"].normalized.tolist() == expected.tolist()
        if isinstance(decision, ScheduleResult):
            node, state = decision.suggested_host, decision.cycle_state
            with cache.read() as snapshot:
                assert run_reserve_plugins(info, node, snapshot, profile, cached_runtime, state) is None
            cache.assume(make_assumed_pod(pod, node, profile, state), node)
            placed += [pod] if pod.spec.resource_claims else []
            bind_claims(cluster, state["DynamicResources"] if pod.spec.resource_claims else None)
        if placed and rng.random() < 0.2:
            released = placed.pop(rng.randrange(len(placed))).spec.resource_claims[0].resource_claim_name
            cache.remove_object(ResourceClaim, f"default/{released}")
    assert len(placed) >= 5


def bind_claims(cluster: Cluster, state: Any) -> None:
    """Write the allocations in the state of DynamicResources to the claims, as PreBind does."""
    for index, allocation in (state.allocation_results if state is not None else {}).items():
        claim_object = state.claims[index]
        status = replace(claim_object.status, allocation=allocation)
        cluster.cache.add_or_update_object(replace(claim_object, status=status))
