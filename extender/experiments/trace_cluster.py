"""The cluster of one run: the scheduling cycle places pods on the nodes of a trace, without an API server."""

from collections.abc import Sequence
from random import Random

from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.cache.cache import Cache
from extender.cache.pod_info import PodInfo
from extender.cache.pod_signature import PodSignature
from extender.cycle.binding_cycle import make_assumed_pod, run_reserve_plugins
from extender.cycle.decision import ScheduleFailure, ScheduleResult
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.scheduling_cycle import schedule_pod
from extender.experiments.fragmentation_causes import Cause, measure_fragmentation
from extender.experiments.gpu_trace import Trace
from extender.experiments.policies import SCHEDULER_NAME, Policy, build_setup
from extender.framework.plugin_errors import FatalPluginError
from extender.framework.status import Code
from extender.plugins.gpu_share.device_table import DeviceTable, NodeDevices


class RunError(FatalPluginError):
    """A plugin failed during a run."""


class FirstOfTies(Random):
    """A random generator that selects the first of several equally good nodes."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:  # noqa: ARG002  Random's signature
        """Return the first number of the range."""
        return 0 if stop is None else start


class TraceCluster:
    """The cluster of one run.

    Attributes:
        cache: the nodes and the placed pods.
    """

    def __init__(self, trace: Trace, nodes: Sequence[Node], policy: Policy, seed: int) -> None:
        setup = build_setup(policy, trace.target_workload, seed)
        self._trace, self._policy_name = trace, policy.name
        self._profile, self._runtime = setup.profiles[SCHEDULER_NAME], wiring.make_runtime()
        self.cache, self._rng, self._node_sampler = Cache(setup.gates), FirstOfTies(seed), NodeSampler()
        for node in nodes:
            self.cache.add_or_update_node(node)

    def place(self, pod: Pod) -> str:
        """Place *pod*; return the name of its node, or an empty string if it fits on none.

        Raises:
            RunError: a plugin failed.
        """
        pod_info = self.cache.make_pod_info(pod)
        decision = self.decide(pod_info)
        if isinstance(decision, ScheduleFailure):
            return ""
        node_name, cycle_state = decision.suggested_host, decision.cycle_state
        with self.cache.read() as snapshot:
            status = run_reserve_plugins(pod_info, node_name, snapshot, self._profile, self._runtime, cycle_state)
        if status is not None:
            raise RunError(f"policy {self._policy_name}, pod {pod.key}: {status.message}")
        self.cache.assume(make_assumed_pod(pod, node_name, self._profile, cycle_state), node_name)
        return node_name

    def decide(self, pod_info: PodInfo) -> ScheduleResult | ScheduleFailure:
        """Return the result of the scheduling cycle; the pod is not placed.

        Raises:
            RunError: a plugin failed.
        """
        with self.cache.read() as snapshot:
            decision = schedule_pod(pod_info, snapshot, self._profile, self._runtime, self._rng, self._node_sampler)
        if isinstance(decision, ScheduleFailure) and decision.status.code is Code.ERROR:
            raise RunError(f"policy {self._policy_name}, pod {pod_info.key}: {decision.message}")
        return decision

    def measure_fragmentation(self) -> dict[Cause, float]:
        """Return the fragmented part of the cluster's GPUs in per cent, by cause."""
        table, devices = self.read_devices()
        milli = measure_fragmentation(devices, self._trace.target_workload, table.model_positions)
        return {cause: round(amount * 100 / self._trace.capacity, 2) for cause, amount in milli.items()}

    def read_devices(self) -> tuple[DeviceTable, NodeDevices]:
        """Return a table of the GPUs, and the GPUs of all nodes."""
        table = DeviceTable()
        with self.cache.read() as snapshot:
            return table, table.get(snapshot.view())


def find_pods_without_node(trace: Trace) -> dict[str, str]:
    """Return the pods of *trace* that fit on no node of the empty cluster: for each `namespace/name` the message.

    Raises:
        RunError: a plugin failed.
    """
    cluster = TraceCluster(trace, trace.nodes, Policy("BestFit"), seed=0)
    messages: dict[PodSignature, str] = {}
    pods_without_node: dict[str, str] = {}
    for pod in trace.pods:
        pod_info = cluster.cache.make_pod_info(pod)
        if pod_info.signature not in messages:
            decision = cluster.decide(pod_info)
            messages[pod_info.signature] = decision.message if isinstance(decision, ScheduleFailure) else ""
        if messages[pod_info.signature]:
            pods_without_node[pod.key] = messages[pod_info.signature]
    return pods_without_node
