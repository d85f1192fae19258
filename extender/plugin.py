"""The public API for authors of plugins. A plugin imports only names from this module.

A Filter plugin for one pod and one node at a time:

    from extender.plugin import NodeInfo, Pod, filter_plugin

    @filter_plugin("GpuModel")
    def gpu_model(pod: Pod, node: NodeInfo) -> str | None:
        return None if "example.com/gpu-model" in node.labels else "node(s) lack a GPU model"

docs/plugins.md is the tutorial. `extender.testing` is the API for tests of plugins. Names in the `__all__` of these two
modules stay compatible within a minor release. Names in other modules may change at any time.
"""

from extender.api.kinds.node import Node, Taint
from extender.api.kinds.pod import Pod
from extender.api.requests import incoming_pod_requests
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.config.errors import ConfigError, FieldError
from extender.config.feature_gates import FeatureGates
from extender.cycle.diagnosis import Diagnosis, NodeRejection
from extender.cycle.post_filter import FailedAttempt
from extender.framework.api_plan import ApiCall, ApiPlan, WaitCondition
from extender.framework.binding_points import (
    ALLOW,
    Bind,
    Permit,
    PermitResult,
    PostBind,
    PostBindResult,
    PreBind,
    PreBindPreFlight,
    PreBindPreFlightResult,
    Reserve,
    UnreserveResult,
)
from extender.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource, QueueingHint
from extender.framework.extension_points import (
    PASS,
    SKIP,
    SKIP_SCORE,
    CacheableFilter,
    CacheableScore,
    DependsOn,
    EnqueueExtensions,
    Filter,
    NormalizeScore,
    PostFilter,
    PostFilterResult,
    PreEnqueue,
    PreFilter,
    PreFilterExtensions,
    PreFilterResult,
    PreScore,
    PreScoreResult,
    QueueSort,
    QueueSortEntry,
    Score,
)
from extender.framework.node_info import NodeInfo, iter_node_infos
from extender.framework.normalize import default_normalize_score
from extender.framework.per_node.adapters import FilterReasons
from extender.framework.per_node.decorators import filter_plugin, per_node_plugin, score_plugin, unresolvable_reason
from extender.framework.plugin_args import DefaultedOptions, PluginArgs, ValidatedOptions
from extender.framework.status import Code, Reason, Rejection, Status, unresolvable_status, unschedulable_status

__all__ = [
    "ALLOW", "PASS", "SKIP", "SKIP_SCORE", "ActionType", "ApiCall", "ApiPlan", "AssignedPodInfo", "Bind",
    "CacheableFilter", "CacheableScore", "ClusterEvent", "ClusterEventWithHint", "Code", "ConfigError",
    "DefaultedOptions", "DependsOn", "Diagnosis", "EnqueueExtensions", "EventResource", "FailedAttempt", "FeatureGates",
    "FieldError", "Filter", "FilterReasons", "Node", "NodeInfo", "NodeRejection", "NodeView", "NormalizeScore",
    "Permit", "PermitResult", "PluginArgs", "Pod", "PodInfo", "PostBind", "PostBindResult", "PostFilter",
    "PostFilterResult", "PreBind", "PreBindPreFlight", "PreBindPreFlightResult", "PreEnqueue", "PreFilter",
    "PreFilterExtensions", "PreFilterResult", "PreScore", "PreScoreResult", "QueueSort", "QueueSortEntry",
    "QueueingHint", "Reason", "Rejection", "Reserve", "Score", "Snapshot", "Status", "Taint", "UnreserveResult",
    "ValidatedOptions", "WaitCondition", "default_normalize_score", "filter_plugin", "incoming_pod_requests",
    "iter_node_infos", "per_node_plugin", "score_plugin", "unresolvable_reason", "unresolvable_status",
    "unschedulable_status",
]  # fmt: skip
