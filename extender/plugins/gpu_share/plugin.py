"""GpuShare lets pods share GPUs: it places pods on single GPUs of a node and writes the chosen GPUs to the pod.

A node has as many GPUs as its allocatable `alibabacloud.com/gpu-count`, and a thousand times as many
`alibabacloud.com/gpu-milli`, which NodeResourcesFit checks. A pod requests a part of one GPU, such as
`alibabacloud.com/gpu-milli: 300`, or whole GPUs, such as `gpu-milli: 2000` and `gpu-count: 2`. PreBind writes the
numbers of the chosen GPUs to the annotation `alibabacloud.com/gpu-index`, such as `0-1`. The free part of every GPU
follows from the annotations of the pods on the nodes, so that a restart loses nothing.

On nodes where HAMi's device plugin (2.10.0) registered the GPUs, one container of a pod can request `nvidia.com/gpu`,
with `nvidia.com/gpumem` (MiB) or `nvidia.com/gpumem-percentage`, and `nvidia.com/gpucores` (per cent). The larger part
of memory and cores counts. PreBind locks the node with `hami.io/mutex.lock`, which needs the verb `patch` on nodes, and
writes `hami.io/vgpu-devices-to-allocate` and HAMi's other annotations. Nodes do not report memory and cores, so
NodeResourcesFit needs them in `ignoredResources`. HAMi's own scheduler must not run beside it. A pod with several GPUs
gets whole GPUs. Annotations that select types or UUIDs of GPUs are not supported.

DynamicResources allocates the GPUs of resource claims. With the option `dynamicResources`, the scores count the GPUs
that its allocation leaves on a node.

**Rejects** a node without enough free GPUs (`node(s) didn't have enough free GPUs`). Also rejects a node if its GPU
model is not in the pod's annotation `alibabacloud.com/gpu-card-model` (`node(s) didn't have the requested GPU model`).
A node whose GPUs claims allocate rejects other requests (`node(s) had GPUs that only resource claims can allocate`). It
rejects claims while other pods use its GPUs (`node(s) had GPUs for resource claims that pods without claims use`). An
invalid request is rejected in PreFilter.

**Scores** by `scorePolicy`. Random, DotProd, GpuClustering, GpuPacking, BestFit and FGD are those of the paper "Beware
of Fragmentation" (USENIX ATC'23). Fill prefers the node that the target workload can fill best afterwards. FGD and Fill
choose the GPU with the best score. Random chooses a random GPU. The other policies choose the GPU with the least
sufficient free part. The scores of Fill and Random are scaled so that only the best nodes have 100.

**Requeued on** a deleted pod, a new node, or changed labels, annotations or allocatable resources of a node. With
`dynamicResources` also on changes of resource slices.

**Options** `scorePolicy`. `targetWorkload`: the expected pods of FGD and Fill, a list of `cpu` (milli-CPU), `gpuMilli`
(of each GPU), `gpuCount`, `gpuModels` and `weight`; without it, the pods seen so far are used. `wastefulPodsWait`, of
Fill: when few GPUs are free, a pod that would waste most of the rest of a free GPU waits for a GPU that is in use. It
does so only while the waiting pods request less than the sum of the parts of GPUs that are too small for most pods.
`seed` of Random. `dynamicResources`: the drivers of GPUs, a list of `driver` and `resource`, the capacity or counter
that measures a GPU, `memory` by default.

Source: hkust-adsl/kubernetes-scheduler-simulator pkg/simulator/plugin/open_gpu_share.go, GpuSharePlugin.Filter,
GpuSharePlugin.Reserve, allocateGpuIdBasedOnBestFit, allocateGpuIdBasedOnRandomFit.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final
from zlib import crc32

import msgspec
import numpy as np

from extender.api.kinds.pod import Pod
from extender.basics.clock import Clock, SystemClock
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.framework.api_plan import ApiCall, ApiPlan
from extender.framework.events import ActionType, ClusterEventWithHint, EventResource
from extender.framework.extension_points import DependsOn, PreFilterResult
from extender.framework.plugin_args import PluginArgs
from extender.framework.status import Code, Reason, Rejection, Status, error_status, unresolvable_status
from extender.plugins.gpu_share.args import FILL, RANDOM, GpuShareArgs
from extender.plugins.gpu_share.claimed_gpus import ONLY_CLAIMS, ClaimedGpus, make_request
from extender.plugins.gpu_share.device_table import DeviceTable, NodeDevices
from extender.plugins.gpu_share.gpu_request import (
    GPU_INDEX,
    GPU_MILLI,
    MILLI_PER_GPU,
    NO_GPU,
    GpuRequest,
    format_device_indices,
    get_annotated_models,
    get_gpu_request,
)
from extender.plugins.gpu_share.hami import (
    GPU,
    LOCK,
    HamiRequest,
    compute_milli_by_node,
    find_lock_owner,
    find_unsupported_annotation,
    make_decision_annotations,
    make_lock,
    read_hami_request,
)
from extender.plugins.gpu_share.policies import (
    SCORE_FUNCTIONS,
    WorkloadTables,
    choose_best_device,
    choose_whole_gpus,
    hash_nodes,
    score_allocation,
)
from extender.plugins.gpu_share.workload_state import WorkloadState

_TOO_FEW: Final = Reason("node(s) didn't have enough free GPUs")
_NO_ALLOCATOR: Final = error_status("option dynamicResources of GpuShare needs the plugin DynamicResources")
_WRONG_MODEL: Final = Reason("node(s) didn't have the requested GPU model", Code.UNRESOLVABLE)


@dataclass(slots=True)
class PreFilterState:
    """The plugin's state of one cycle.

    Attributes:
        request: the GPU request of the pod.
        cpu: the request in milli-CPU.
        models: the GPU models in the pod's annotation; empty if every model is accepted.
        must_wait: whether the pod must not use a free GPU, because of `wastefulPodsWait`.
        workload_tables: the tables of the policy; None for policies without a target workload.
        device_table_version: the version of the device table that the cycle reads.
        hami: the request in HAMi's resources; `request` is then that on the largest GPUs.
        has_claims: whether DynamicResources may allocate GPUs for the pod.
        chosen_devices: the chosen GPUs by node name.
        annotations: the annotations of the decision by node name.
        locked: whether PreBind wrote HAMi's lock on the node.
    """

    request: GpuRequest
    cpu: int
    models: frozenset[str] = frozenset()
    must_wait: bool = False
    workload_tables: WorkloadTables | None = None
    device_table_version: int = 0
    hami: HamiRequest | None = None
    has_claims: bool = False
    chosen_devices: dict[str, tuple[int, ...]] = field(default_factory=dict)
    annotations: dict[str, dict[str, str]] = field(default_factory=dict)
    locked: bool = False

    def mark_locked(self, resource_version: str) -> None:  # noqa: ARG002  ApiCall.on_written
        """Note that the lock is written."""
        self.locked = True


class GpuShare:
    """The plugin GpuShare. An annotation of the assumed pod contains the chosen GPUs; the device table reads it."""

    name: ClassVar[str] = "GpuShare"
    options: ClassVar[type[GpuShareArgs]] = GpuShareArgs
    reads_annotations: ClassVar[bool] = True
    filter_depends_on: ClassVar[DependsOn] = DependsOn.NODE_AND_PODS
    score_depends_on: ClassVar[DependsOn] = DependsOn.NODE_AND_PODS

    def __init__(self, args: PluginArgs[GpuShareArgs], clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._args = args.options
        self._policy = args.options.score_policy
        drivers = {entry.driver: entry.resource for entry in args.options.dynamic_resources}
        self._claimed_gpus = ClaimedGpus(drivers, args.shared_state) if drivers else None
        self._device_table = DeviceTable(self._claimed_gpus)
        self._workload = WorkloadState(args.options, self._device_table, self._claimed_gpus)
        self._must_wait = self._has_claims = False
        self._versioned_node_hashes: tuple[Any, IntArray] | None = None

    # -- PreFilter and Filter

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Read the request of the pod. Skip Filter for a pod without a GPU request and without claims."""
        if self._claimed_gpus is not None and not self._claimed_gpus.sync(snapshot):
            return PreFilterResult(status=_NO_ALLOCATOR)
        self._has_claims = self._claimed_gpus is not None and self._claimed_gpus.has_claims(pod)
        devices = self._device_table.get(snapshot.view())
        hami = read_hami_request(pod.pod)
        request = get_gpu_request(pod) if hami is None else self._make_largest_request(pod, hami)
        if isinstance(request, str):
            return PreFilterResult(status=unresolvable_status(request))
        cpu = dict(pod.signature.requests).get(snapshot.symbols.resources.intern("cpu"), 0)
        tables = self._workload.update_tables(pod, snapshot, devices)
        self._must_wait = self._workload.update_waiting_demand(pod, devices, request)
        state = PreFilterState(
            request,
            cpu,
            get_annotated_models(pod.pod),
            self._must_wait,
            tables,
            self._device_table.version,
            hami if isinstance(hami, HamiRequest) else None,
            self._has_claims,
        )
        return PreFilterResult(state=state, skip=request == NO_GPU and not self._has_claims)

    def _make_largest_request(self, pod: PodInfo, hami: HamiRequest | str) -> GpuRequest | str:
        """Return the request on the GPUs with the largest memory, or a message if it is not supported."""
        if isinstance(hami, str):
            return hami
        if get_gpu_request(pod) != NO_GPU:
            return f"a pod can request either {GPU} or {GPU_MILLI}"
        if name := find_unsupported_annotation(pod.pod.metadata.annotations):
            return f"annotation {name} is not supported"
        return hami.make_gpu_request(self._device_table.find_hami_memory())

    def filter_cache_key(self, pod: PodInfo) -> Hashable | None:
        """Return the request, the accepted models, the slices, and whether the pod must wait; None with claims."""
        if self._has_claims:
            return None
        slices = None if self._claimed_gpus is None else self._claimed_gpus.slices_version
        return get_gpu_request(pod), read_hami_request(pod.pod), get_annotated_models(pod.pod), self._must_wait, slices

    def filter(self, pod: PodInfo, nodes: NodeView, state: PreFilterState) -> Sequence[Rejection]:
        """Reject nodes of another GPU model, and nodes without enough free GPUs of the kind that the pod requests."""
        devices = self._device_table.get(nodes)
        rejections = list[Rejection]()
        if state.has_claims and self._claimed_gpus is not None:
            rejections += self._claimed_gpus.reject_mixed_nodes(pod, nodes, devices.claimed)
        if state.request == NO_GPU:
            return rejections
        if self._claimed_gpus is not None:
            rejections.append(Rejection(devices.claimed > 0, ONLY_CLAIMS))
        if state.models:
            accepted = [
                position for name, position in self._device_table.model_positions.items() if name in state.models
            ]
            rejections.append(Rejection(~np.isin(devices.model, accepted), _WRONG_MODEL))
        fits: BoolArray
        if state.hami is not None:
            fits = devices.free >= compute_milli_by_node(state.hami, devices.memory)[:, None]
            fits &= devices.memory[:, None] > 0
        else:
            fits = (devices.free >= state.request.milli) & (devices.memory[:, None] == 0)
        if state.must_wait:
            fits &= devices.free < MILLI_PER_GPU
        too_few = np.count_nonzero(fits, axis=1) < state.request.count
        rejections.append(Rejection(too_few & (devices.claimed == 0), _TOO_FEW))
        return tuple(rejection for rejection in rejections if rejection.nodes.any())

    # -- Score

    def score_cache_key(self, pod: PodInfo) -> Hashable | None:
        """Return what the score depends on besides the nodes; None for the policy Random and for a pod with claims."""
        if self._policy == RANDOM or self._has_claims:
            return None
        request = get_gpu_request(pod), read_hami_request(pod.pod)
        claims = None if self._claimed_gpus is None else self._claimed_gpus.version
        return pod.signature.requests, request, self._workload.tables_key, self._must_wait, claims

    def score(self, pod: PodInfo, nodes: NodeView, state: PreFilterState) -> IntArray:
        """Return the score of the policy for each node."""
        if self._policy == RANDOM:
            pod_hash = crc32(f"{self._args.seed}/{pod.uid}".encode())
            return hash_nodes(nodes.take(self._get_node_hashes(nodes.snapshot)), pod_hash)
        devices = self._device_table.get(nodes)
        if state.has_claims and state.request == NO_GPU and self._claimed_gpus is not None:
            return self._score_claims(pod, nodes, devices, state)
        if state.hami is None:
            return self._score_request(devices, state.request, state)
        scores = np.zeros(len(devices.memory), dtype=np.int64)
        for memory in np.unique(devices.memory).tolist():
            rows = np.flatnonzero(devices.memory == memory)
            scores[rows] = self._score_request(devices.take(rows), state.hami.make_gpu_request(memory), state)
        return scores

    def _score_claims(self, pod: PodInfo, nodes: NodeView, devices: NodeDevices, state: PreFilterState) -> IntArray:
        """Return the score of the GPUs that the allocation of DynamicResources leaves on each node."""
        claimed_gpus, free = self._claimed_gpus, devices.free
        after = free if claimed_gpus is None else claimed_gpus.measure_after(pod, nodes, free)
        remaining, taken = replace(devices, free=after, cpu=devices.cpu - state.cpu), free - after
        positions = np.flatnonzero(taken.any(axis=1))
        self._workload.learn_claims(pod, make_request(taken[positions[0]].tolist() if len(positions) else []))
        if state.workload_tables is None:
            return score_allocation(self._policy, devices, remaining)
        return state.workload_tables.score_change(devices, remaining)

    def _score_request(self, devices: NodeDevices, request: GpuRequest, state: PreFilterState) -> IntArray:
        if state.workload_tables is None:
            return SCORE_FUNCTIONS[self._policy](devices, request, state.cpu)
        if not state.must_wait:
            return state.workload_tables.score(devices, request, state.cpu)
        device_scores = state.workload_tables.score_devices(devices, request, state.cpu)
        used = np.where(devices.free == MILLI_PER_GPU, device_scores.min(initial=0), device_scores)
        scores: IntArray = used.max(axis=1)
        return scores

    def normalize_score(self, pod: PodInfo, scores: IntArray, nodes: NodeView, state: PreFilterState) -> IntArray:  # noqa: ARG002
        """Scale the scores of Fill and Random to 0 to 99, and to 100 for the best nodes."""
        if self._policy not in {FILL, RANDOM} or not len(scores):
            return scores
        lowest, highest = int(scores.min()), int(scores.max())
        scaled = (scores - lowest) * (99 / max(1, highest - lowest))
        return np.where(scores == highest, 100, scaled.astype(np.int64))

    def _get_node_hashes(self, snapshot: Snapshot) -> IntArray:
        if self._versioned_node_hashes is None or self._versioned_node_hashes[0] != snapshot.row_map_version:
            hashes = np.array([crc32(name.encode()) for name in snapshot.names], dtype=np.int64)
            self._versioned_node_hashes = snapshot.row_map_version, hashes
        return self._versioned_node_hashes[1]

    # -- Reserve and PreBind

    def make_assumed_pod(self, pod: Pod, node_name: str, state: Any) -> Pod:
        """Return *pod* with the annotation of the GPUs that it gets on the node, so that later pods see them."""
        if not self._choose_devices(pod, node_name, state):
            return pod
        annotations = {**pod.metadata.annotations, **state.annotations[node_name]}
        return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, annotations=annotations))

    def reserve(self, pod: PodInfo, node_name: str, snapshot: Snapshot, state: Any) -> Status | None:  # noqa: ARG002
        """Choose the GPUs on the node, unless they are chosen already."""
        if isinstance(state, PreFilterState) and state.request == NO_GPU:
            return None
        if self._choose_devices(pod.pod, node_name, state):
            self._workload.waiting_demand.remove(pod.uid)
            return None
        return error_status(f'the GPUs of node "{node_name}" changed')

    def unreserve(self, pod: PodInfo, node_name: str, state: Any) -> Sequence[ApiCall]:  # noqa: ARG002  the extension point's signature
        """Forget the chosen GPUs, and return the call that unlocks the node if PreBind locked it.

        The annotation of a pod without a node is not read.
        """
        if not isinstance(state, PreFilterState):
            return ()
        state.chosen_devices.pop(node_name, None)
        if not state.locked:
            return ()
        state.locked = False
        return (ApiCall("patch", "Node", "", node_name, {"metadata": {"annotations": {LOCK: None}}}),)

    def pre_bind(self, pod: PodInfo, node_name: str, snapshot: Snapshot, state: Any) -> ApiPlan | Status:
        """Return the call that writes the chosen GPUs to the pod, after the lock on the node for HAMi's device plugin.

        The call patches the status subresource, which also accepts annotations. kube-scheduler's ClusterRole allows it,
        but not the lock.
        """
        if isinstance(state, PreFilterState) and state.request == NO_GPU:
            return ApiPlan()
        if not isinstance(state, PreFilterState) or not state.chosen_devices.get(node_name):
            return error_status(f'no GPUs were chosen on node "{node_name}"')
        meta, calls = pod.pod.metadata, list[ApiCall]()
        if state.hami is not None:
            lock = self._lock_node(pod, node_name, snapshot, state)
            if isinstance(lock, Status):
                return lock
            calls.append(lock)
        body = {"metadata": {"uid": meta.uid, "annotations": state.annotations[node_name]}}
        calls.append(ApiCall("patch", "Pod", meta.namespace, meta.name, body, "status", strategic=True))
        return ApiPlan(tuple(calls))

    def _lock_node(self, pod: PodInfo, node_name: str, snapshot: Snapshot, state: PreFilterState) -> ApiCall | Status:
        """Return the call that locks the node. It fails if the node changed since the snapshot."""
        row, now = snapshot.row(node_name), self._clock.now()
        if row is None:
            return error_status(f'node "{node_name}" was deleted')
        meta = snapshot.nodes[row].metadata
        if owner := find_lock_owner(meta.annotations, pod.pod, now):
            return error_status(f'node "{node_name}" is locked for the GPUs of {owner}')
        annotations = {LOCK: make_lock(pod.pod, now)}
        body = {"metadata": {"annotations": annotations, "resourceVersion": meta.resource_version}}
        return ApiCall("patch", "Node", "", node_name, body, on_written=state.mark_locked)

    def _choose_devices(self, pod: Pod, node_name: str, state: Any) -> tuple[int, ...]:
        """Return the GPUs for the pod on the node; empty if it gets none, or if the table changed since Filter."""
        if not isinstance(state, PreFilterState) or state.request == NO_GPU:
            return ()
        if node_name not in state.chosen_devices:
            is_current = state.device_table_version == self._device_table.version
            devices = self._device_table.get_node(node_name) if is_current else None
            indices = () if devices is None else self._choose(pod, devices, state)
            if not indices:
                return ()
            state.chosen_devices[node_name] = indices
            state.annotations[node_name] = self._make_annotations(node_name, indices, state)
        return state.chosen_devices[node_name]

    def _make_annotations(self, node_name: str, indices: tuple[int, ...], state: PreFilterState) -> dict[str, str]:
        if state.hami is None:
            return {GPU_INDEX: format_device_indices(indices)}
        registered = self._device_table.get_registered_devices(node_name)
        return make_decision_annotations(state.hami, registered, indices, node_name, self._clock.now())

    def _choose(self, pod: Pod, devices: NodeDevices, state: PreFilterState) -> tuple[int, ...]:
        """Return the GPUs for the pod on the only node in *devices*; empty if they are too full."""
        request = state.request if state.hami is None else state.hami.make_gpu_request(int(devices.memory[0]))
        if not request.is_shared:
            return choose_whole_gpus(devices, request)
        free = devices.free[0]
        fits = free >= request.milli
        if state.must_wait:
            fits &= free < MILLI_PER_GPU
        if state.workload_tables is not None:
            device_scores = state.workload_tables.score_devices(devices, request, state.cpu)[0]
        elif self._policy == RANDOM:
            uid = pod.uid_or_key
            device_scores = hash_nodes(np.arange(len(free)), crc32(f"{self._args.seed}/{uid}/gpu".encode()))
        else:
            device_scores = -free
        return choose_best_device(device_scores, fits)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events that may free GPUs."""
        node_actions = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE | ActionType.UPDATE_NODE_LABEL
        node_actions |= ActionType.UPDATE_NODE_ANNOTATION
        events = (
            ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE),
            ClusterEventWithHint(EventResource.NODE, node_actions),
        )
        if self._claimed_gpus is None:
            return events
        return *events, ClusterEventWithHint(EventResource.RESOURCE_SLICE, ActionType.ALL)
