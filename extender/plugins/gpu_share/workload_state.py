"""What GpuShare knows about the target workload: the tables of the policy, and the pods that must wait."""

import numpy as np

from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.snapshot import Snapshot
from extender.plugins.gpu_share.args import FILL, GpuShareArgs
from extender.plugins.gpu_share.claimed_gpus import ClaimedGpus
from extender.plugins.gpu_share.device_table import DeviceTable, NodeDevices
from extender.plugins.gpu_share.gpu_request import GpuRequest
from extender.plugins.gpu_share.policies import WORKLOAD_POLICIES, WorkloadTables, make_workload_tables
from extender.plugins.gpu_share.target_workload import TargetWorkload, WorkloadHistogram, merge_pods
from extender.plugins.gpu_share.wasteful_requests import WaitingDemand, WastefulRequests


class WorkloadState:
    """The target workload of one plugin, its tables, and the demand that waits.

    Args:
        args: the options of the plugin.
        device_table: the GPUs of all nodes.
        claimed_gpus: the GPUs that resource claims allocate; None if there are none.

    Attributes:
        target: the target workload.
        tables: the tables of the policy; None for policies without a target workload.
        tables_key: a value that changes with `tables`.
        waiting_demand: the pods that were seen and are not placed.
    """

    def __init__(self, args: GpuShareArgs, device_table: DeviceTable, claimed_gpus: ClaimedGpus | None) -> None:
        self._args = args
        self._device_table = device_table
        self._claimed_gpus = claimed_gpus
        self.target = TargetWorkload(merge_pods(args.target_workload))
        self._histogram: WorkloadHistogram | None = None
        self._wasteful_requests: WastefulRequests | None = None
        self.tables: WorkloadTables | None = None
        self.tables_key: tuple[int, int, int] | None = None
        self.waiting_demand = WaitingDemand()

    def update_tables(self, pod: PodInfo, snapshot: Snapshot, devices: NodeDevices) -> WorkloadTables | None:
        """Return the tables of the policy. Make them again if the workload or the number of models or GPUs changed."""
        policy = self._args.score_policy
        if policy not in WORKLOAD_POLICIES:
            return None
        if not self._args.target_workload:
            self.target = self._learn_workload(pod, snapshot)
        model_positions = self._device_table.model_positions
        key = (self.target.version, len(model_positions), int(devices.device_count.sum()))
        if self.tables is None or self.tables_key != key:
            gpus = np.bincount(devices.model, weights=devices.device_count, minlength=len(model_positions)).astype(
                np.int64
            )
            self.tables = make_workload_tables(policy, self.target.pods, model_positions, gpus)
            self.tables_key = key
            if policy == FILL and self._args.wasteful_pods_wait:
                self._wasteful_requests = WastefulRequests(self.target.pods, model_positions)
        return self.tables

    def _learn_workload(self, pod: PodInfo, snapshot: Snapshot) -> TargetWorkload:
        histogram, claimed_gpus = self._histogram, self._claimed_gpus
        is_new = histogram is None
        if histogram is None:
            histogram = self._histogram = WorkloadHistogram(snapshot.symbols.resources.intern("cpu"))
        if claimed_gpus is not None:

            def find_claimed_request(pod: PodInfo | AssignedPodInfo) -> GpuRequest | None:
                return claimed_gpus.find_request(pod.pod, snapshot)

            histogram.has_claims, histogram.find_claimed_request = claimed_gpus.has_claims, find_claimed_request
        if is_new:
            histogram.add(snapshot.assigned_pods())
        histogram.device_memory = self._device_table.find_hami_memory()
        return histogram.add((pod,))

    def learn_claims(self, pod: PodInfo, request: GpuRequest) -> None:
        """Count *pod*, whose claims will take *request*, if the workload is learned."""
        if self._histogram is not None:
            self._histogram.add_claimed(pod, request)

    def update_waiting_demand(self, pod: PodInfo, devices: NodeDevices, request: GpuRequest) -> bool:
        """Count the pod as waiting until it is reserved. Return whether it must wait for a GPU that is in use."""
        if self._wasteful_requests is None:
            return False
        self.waiting_demand.remove(pod.uid)
        if devices.claimed.any():
            devices = devices.take(np.flatnonzero(devices.claimed == 0))
        milli, version = self.waiting_demand.milli, self._device_table.version
        must_wait = self._wasteful_requests.must_wait(devices, request, milli, version)
        self.waiting_demand.add(pod.uid, request.total)
        return must_wait
