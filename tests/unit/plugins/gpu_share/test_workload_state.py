"""The tables of a policy: when they are made again, what pods with claims count as, and whose demand waits."""

import numpy as np
import pytest

from extender.plugins.gpu_share.args import GpuShareArgs
from extender.plugins.gpu_share.claimed_gpus import ClaimedGpus
from extender.plugins.gpu_share.device_table import DeviceTable
from extender.plugins.gpu_share.gpu_request import GpuRequest
from extender.plugins.gpu_share.target_workload import TargetPod
from extender.plugins.gpu_share.workload_state import WorkloadState
from extender.testing import Cluster, make_cluster
from tests.unit.dra.builders import make_allocator
from tests.unit.plugins.gpu_share.claim_builders import DRIVER, claim_pod, gpu_nodes, memory_claim, share
from tests.unit.plugins.gpu_share.gpu_builders import gpu_node, shared_pod

HALF = TargetPod(1000, 500, 1, weight=1.0)


class State:
    """The state of a plugin on a cluster."""

    def __init__(self, cluster: Cluster, args: GpuShareArgs, *, with_claims: bool = False) -> None:
        shared_state = {"DynamicResources": make_allocator({"DRAConsumableCapacity": True})}
        gpus = ClaimedGpus({DRIVER: "memory"}, shared_state) if with_claims else None
        self.cluster, self.snapshot = cluster, cluster.cache.snapshot()
        if gpus is not None:
            gpus.sync(self.snapshot)
        table = DeviceTable(gpus)
        self.devices = table.get(self.snapshot.view())
        self.workload = WorkloadState(args, table, gpus)

    def update(self, pod: str) -> object:
        """Update the tables for a pod."""
        return self.workload.update_tables(
            self.snapshot.make_pod_info(self.cluster.pod(pod)), self.snapshot, self.devices
        )

    def list_kinds(self) -> list[tuple[int, int, float]]:
        """Return the milli, count and weight of each kind of pod."""
        return [(pod.gpu_milli, pod.gpu_count, round(pod.weight, 2)) for pod in self.workload.target.pods]


@pytest.mark.parametrize(("policy", "has_tables"), [("BestFit", False), ("FGD", True), ("Fill", True)])
def test_only_policies_with_a_target_workload_have_tables(policy: str, has_tables: bool) -> None:
    state = State(make_cluster(gpu_node("a"), shared_pod("p", 500)), GpuShareArgs(policy, (HALF,)))
    assert (state.update("p") is not None) == has_tables


def test_tables_are_made_again_if_the_number_of_gpus_changes() -> None:
    state = State(make_cluster(gpu_node("a"), shared_pod("p", 500)), GpuShareArgs("FGD", (HALF,)))
    tables = state.update("p")
    assert state.update("p") is tables
    state.devices.device_count += 1
    assert state.update("p") is not tables


def test_a_pod_counts_with_what_its_claims_take() -> None:
    """The pod `done` has half of a GPU. What `new` takes is unknown until the allocator found devices."""
    cluster = make_cluster(
        *gpu_nodes("a"),
        memory_claim("half", "40Gi", share("gpu-0", "40Gi"), node="a"),
        memory_claim("quarter", "20Gi"),
        claim_pod("done", "half", node="a"),
        claim_pod("new", "quarter"),
        shared_pod("p", 810),
    )
    state = State(cluster, GpuShareArgs("FGD"), with_claims=True)
    state.update("new")
    assert state.list_kinds() == [(500, 1, 1.0)]
    new = state.snapshot.make_pod_info(cluster.pod("new"))
    state.workload.learn_claims(new, GpuRequest(250, 1))
    state.workload.learn_claims(new, GpuRequest(250, 1))
    state.update("p")
    assert sorted(state.list_kinds()) == [(250, 1, 0.33), (500, 1, 0.33), (810, 1, 0.33)]


def test_gpus_of_claims_are_no_reason_to_stop_waiting() -> None:
    """One of 12 GPUs for pods without claims is free, so a pod of 810 milli waits; 20 GPUs of claims do not count."""
    used = [shared_pod(f"p{number}", 810, "used", str(number)) for number in range(10)]
    small = shared_pod("small", 100, "used", "10")
    nodes = [gpu_node("used", gpus=11, cpu="90"), gpu_node("free", gpus=1)]
    cluster = make_cluster(
        *gpu_nodes(*(f"c{number}" for number in range(10))), *nodes, *used, small, shared_pod("p", 810)
    )
    workload = (
        TargetPod(1000, 810, 1, weight=0.4),
        TargetPod(1000, 500, 1, weight=0.2),
        TargetPod(1000, 1000, 1, weight=0.4),
    )
    state = State(cluster, GpuShareArgs("Fill", workload), with_claims=True)
    state.update("p")
    pod = state.snapshot.make_pod_info(cluster.pod("p"))
    assert np.count_nonzero(state.devices.claimed) == 10
    assert state.workload.update_waiting_demand(pod, state.devices, GpuRequest(810, 1))
    assert state.workload.waiting_demand.milli == 810
