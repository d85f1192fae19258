"""The Kubernetes releases whose kube-scheduler can be emulated, and their differences that no feature gate guards.

`feature_gate_specs.py` has the feature gates of each release, and `defaults.py` has its default plugins. Each other
difference in decisions is one field of `Release`. A plugin reads the field as `gates.release.<field>`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Final

from extender.config.errors import ConfigError, FieldError

_PATH: Final = "--emulated-version"
_MINOR_VERSION: Final = re.compile(r"v?(?P<major>\d{1,4})\.(?P<minor>\d{1,4})(?!\d)")


@dataclass(frozen=True, slots=True)
class Release:
    """A minor release of Kubernetes, with the scheduling rules that no feature gate guards.

    The defaults are the rules of the newest release.

    Attributes:
        version: the minor release, such as `1.37`.
        api_versions: by kind, the API version of each kind whose version differs between the releases.
        later_extension_points: by plugin, the extension points of the configuration that the plugin implements only in
            later releases.
        pod_group_condition: the type of the condition that says whether a pod group was scheduled.
        activates_without_deletion: a preemptor is retried at once if its last victim was only waiting or being bound.
        observes_terminating_victims: a preemption counts in the metrics of victims if all victims are terminating.
        measures_evictions: the metrics of evictions in the background have their duration and result. Otherwise each
            counts as a success that took no time, because kube-scheduler evaluates the labels at the start.
        retries_bindings: a binding that an error of the API server rejects is sent again up to three times.
        queues_pod_groups: a pod group is queued and popped as one. Otherwise each member is.
        uses_placement_feasible: PlacementFeasible plugins decide after each member whether a pod group is feasible.
            Otherwise the Permit plugins decide.
        updates_lists_in_group_cycle: an assumed member of a pod group counts in the lists of nodes with affinity terms
            and in the used claims. Otherwise other members see it only on its node.
        has_pod_group_post_filter: PodGroupPostFilter is an extension point of the configuration. It runs for each pod
            group that cannot be scheduled, and PostFilter does not run for its members.
        checks_member_priorities: all members of a pod group must have its priority and the same preemption policy.
        has_group_victims: a victim of preemption is a pod or a pod group, and has the priority of its group.
        reads_start_times_once: a pod that has not started has one start time in a preemption. Otherwise each comparison
            reads the clock, so that of two such pods each is earlier than the other.
        counts_image_volumes: ImageLocality counts image volumes in the number of images that scales its score.
        takes_maximum_of_resize_sums: the requests of a pod in an in-place resize are the maximum of three sums over its
            containers. Otherwise they are the sum of the maximum of each container.
        replaces_namespace_selectors: InterPodAffinity replaces the namespace selector of a term of the incoming pod by
            the names of the selected namespaces. Otherwise the selector also matches an empty label set.
        pod_event_labels: the labels of the event resources that have another name in metrics and logs, by resource.
        splits_pod_events: plugins register separately for events of assigned pods and of the waiting pod itself, and a
            pod that requests more causes an event of its own. Otherwise plugins register for the events of all pods.
        requeues_after_claim_deletion: the deletion of an allocated ResourceClaim requeues pods that wait for devices.
        requeues_after_taint_updates: an update of the taints of a node requeues the pods that were rejected by a plugin
            that registered for new nodes, but not for this update.
        reevaluates_gated_pods: the periodic flush checks again whether a pod is gated, once in the maximum time.
        unschedulable_queue_name: the name of the queue of unschedulable pods in the dump.
        one_anti_affinity_term_suffices: for the queueing hints of InterPodAffinity, one matching anti-affinity term of
            a pod is enough. Otherwise all anti-affinity terms must match.
        reports_missing_deallocation: PostFilter of DynamicResources has a reason when it deallocates no claim.
        reports_preemption: the message of a preemptor says that it preempts other pods.
        stops_at_violated_budget: the check of a victim stops at the first disruption budget without a disruption left.
        nominates_gated_pods: a pod that PreEnqueue rejects still counts as nominated.
        applies_rules_without_selector: a DeviceTaintRule without a selector applies to all devices. Otherwise it
            applies to none.
        compares_all_distinct_devices: distinctAttribute compares all devices of a request. Otherwise it compares one
            device per request.
        separates_counters_by_driver: pools of different drivers with one name have separate shared counters.
        restricts_counter_slices: a slice with shared counters belongs to the nodes that it names. Otherwise it belongs
            to all nodes.
        keeps_exhausted_devices: a request for all devices includes devices whose capacity is used up, and fails.
        counts_shares_without_capacity: a share of a device without recorded capacity counts as use of the device.
        checks_capacity_amounts: a capacity that is negative or cannot be represented ends the attempt. Rounded
            capacities have the format of their step.
        checks_device_limit_by_request: the error about the device limit of a claim names the request that exceeds it.
        clears_requests_of_common_config: a configuration that applies to all requests of an allocation lists none.
        explains_selector_errors: the error of a selector names the device, and gives advice if an attribute is missing.
        supports_skipped_operations: devices may skip operations of the kubelet. A claim with such a device needs a node
            that declares the feature DRAOptionalNodeOperations.
        has_node_allocatable_overhead: devices have `nodeAllocatableResources` with a mapping and an overhead, and an
            allocated claim counts too. Otherwise they have `nodeAllocatableResourceMappings`.
        reads_list_attributes: selectors read attributes that are lists without the gate DRAListTypeAttributes, which
            selects kube-scheduler's experimental allocator.
    """

    version: str
    api_versions: Mapping[str, str]
    later_extension_points: Mapping[str, frozenset[str]]
    pod_group_condition: str
    pod_event_labels: Mapping[str, str]
    unschedulable_queue_name: str
    activates_without_deletion: bool = True
    observes_terminating_victims: bool = True
    measures_evictions: bool = True
    retries_bindings: bool = True
    queues_pod_groups: bool = True
    uses_placement_feasible: bool = True
    updates_lists_in_group_cycle: bool = True
    has_pod_group_post_filter: bool = True
    checks_member_priorities: bool = True
    has_group_victims: bool = True
    reads_start_times_once: bool = True
    counts_image_volumes: bool = True
    takes_maximum_of_resize_sums: bool = True
    replaces_namespace_selectors: bool = True
    splits_pod_events: bool = True
    requeues_after_claim_deletion: bool = True
    requeues_after_taint_updates: bool = False
    reevaluates_gated_pods: bool = True
    one_anti_affinity_term_suffices: bool = True
    reports_missing_deallocation: bool = False
    reports_preemption: bool = True
    stops_at_violated_budget: bool = True
    nominates_gated_pods: bool = True
    applies_rules_without_selector: bool = False
    compares_all_distinct_devices: bool = True
    separates_counters_by_driver: bool = True
    restricts_counter_slices: bool = True
    keeps_exhausted_devices: bool = True
    counts_shares_without_capacity: bool = True
    checks_capacity_amounts: bool = True
    checks_device_limit_by_request: bool = True
    clears_requests_of_common_config: bool = True
    explains_selector_errors: bool = True
    supports_skipped_operations: bool = True
    has_node_allocatable_overhead: bool = True
    reads_list_attributes: bool = True

    @property
    def minor_version(self) -> tuple[int, int]:
        """The minor release as numbers, such as (1, 37)."""
        major, _, minor = self.version.partition(".")
        return int(major), int(minor)

    @property
    def previous_version(self) -> str:
        """The minor release before this one."""
        major, minor = self.minor_version
        return f"{major}.{minor - 1}"


RELEASE_1_37: Final = Release(
    version="1.37",
    api_versions={"PodGroup": "scheduling.k8s.io/v1beta1", "DeviceTaintRule": "resource.k8s.io/v1"},
    later_extension_points={},
    pod_group_condition="PodGroupInitiallyScheduled",
    pod_event_labels={},
    unschedulable_queue_name="unschedulableEntities",
)
_RULES_BEFORE_1_37: Final[Mapping[str, Any]] = {
    rule.name: not rule.default for rule in fields(Release) if isinstance(rule.default, bool)
}
"""The attributes that say whether a rule applies. All of these rules changed in 1.37."""
RELEASE_1_36: Final = replace(
    RELEASE_1_37,
    version="1.36",
    api_versions={"PodGroup": "scheduling.k8s.io/v1alpha2", "DeviceTaintRule": "resource.k8s.io/v1beta2"},
    later_extension_points=dict.fromkeys(
        ("NodeName", "NodeUnschedulable", "TaintToleration"), frozenset({"preFilter"})
    ),
    pod_group_condition="PodGroupScheduled",
    pod_event_labels={"UnscheduledPod": "UnschedulablePod", "TargetPod": "UnschedulablePod"},
    unschedulable_queue_name="unschedulablePods",
    **_RULES_BEFORE_1_37,
)
RELEASES: Final[Mapping[str, Release]] = MappingProxyType(
    {release.version: release for release in (RELEASE_1_36, RELEASE_1_37)}
)
"""The releases by minor version, oldest first."""

DEFAULT_RELEASE: Final = RELEASE_1_37
"""The release that is emulated unless another one is selected."""


def find_release(kubernetes_version: str) -> Release | None:
    """Return the release of a full version such as `v1.37.2`, or the nearest release that can be emulated.

    Returns None if the version has no major and minor number.
    """
    version = _parse_minor_version(kubernetes_version)
    if version is None:
        return None
    older_releases = [release for release in RELEASES.values() if release.minor_version <= version]
    return older_releases[-1] if older_releases else next(iter(RELEASES.values()))


def is_version_of(kubernetes_version: str, release: Release) -> bool:
    """Return whether a full version such as `v1.37.2` is one of *release*, not only near it."""
    return _parse_minor_version(kubernetes_version) == release.minor_version


def _parse_minor_version(kubernetes_version: str) -> tuple[int, int] | None:
    numbers = _MINOR_VERSION.match(kubernetes_version)
    return None if numbers is None else (int(numbers["major"]), int(numbers["minor"]))


def parse_emulated_version(flag_values: Iterable[str]) -> Release:
    """Return the release that the flag `--emulated-version` selects; the last value counts.

    The values are such as `1.36`, `kube=1.36` or `v1.36`; without any, the default release is returned.

    Raises:
        ConfigError: a value names another component or a release that cannot be emulated.

    Source: component-base/compatibility/registry.go, componentGlobalsRegistry.SetEmulationVersion (1.37).
    """
    release = DEFAULT_RELEASE
    supported_versions = " or ".join(RELEASES)
    for component_version in (item.strip() for value in flag_values for item in value.split(",")):
        component, _, version = component_version.rpartition("=")
        if component not in {"", "kube"}:
            message = f"component not registered: {component}; want kube={DEFAULT_RELEASE.version}"
            raise ConfigError([FieldError(_PATH, message)])
        selected_release = RELEASES.get(version.removeprefix("v"))
        if selected_release is None:
            raise ConfigError([FieldError(_PATH, f"{version} cannot be emulated; want {supported_versions}")])
        release = selected_release
    return release
