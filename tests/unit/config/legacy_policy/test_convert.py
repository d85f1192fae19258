"""Conversion of a Policy: plugins, their order, weights and arguments, and the warnings."""

from typing import Any

import pytest

from extender.app import wiring
from extender.config.errors import ConfigError
from extender.config.legacy_policy import policy_document
from extender.config.legacy_policy.algorithm_providers import get_provider
from extender.config.legacy_policy.convert import ConvertedPolicy, convert_policy
from extender.config.model import Extender, ManagedResource, TLSConfig
from extender.cycle.diagnosis import find_nodes_that_pass_filters
from tests.build import make_cluster, make_node, make_pod

MANDATORY = ["NodeUnschedulable", "TaintToleration"]


def convert_fields(**fields: Any) -> ConvertedPolicy:
    loaded = policy_document.decode_document({"kind": "Policy", "apiVersion": "v1", **fields}, "f", [])
    return convert_policy(loaded.policy, loaded.warnings)


def filters_and_scores(converted: ConvertedPolicy) -> tuple[list[str], dict[str, int]]:
    """Return the names of the Filter plugins in order, and the weights of the Score plugins."""
    profile = wiring.build_setup(converted.configuration).first_profile
    return [plugin.name for plugin in profile.filter_plugins], {
        score.plugin.name: score.weight for score in profile.score_plugins
    }


def plugin_config(converted: ConvertedPolicy) -> dict[str, Any]:
    return dict(converted.configuration.profiles[0].plugin_config)


def test_empty_lists_leave_the_mandatory_predicates_and_no_priorities() -> None:
    assert filters_and_scores(convert_fields(predicates=[], priorities=[])) == (MANDATORY, {})


def test_absent_lists_mean_the_default_provider() -> None:
    filters, scores = filters_and_scores(convert_fields())
    assert filters == [
        *("NodeUnschedulable", "NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity", "VolumeRestrictions"),
        *("TaintToleration", "EBSLimits", "GCEPDLimits", "NodeVolumeLimits", "AzureDiskLimits", "VolumeBinding"),
        *("VolumeZone", "PodTopologySpread", "InterPodAffinity"),
    ]
    assert scores == {
        "SelectorSpread": 1,
        "InterPodAffinity": 1,
        "NodeResourcesLeastAllocated": 1,
        "NodeResourcesBalancedAllocation": 1,
        "NodePreferAvoidPods": 10000,
        "NodeAffinity": 1,
        "TaintToleration": 1,
        "ImageLocality": 1,
        "PodTopologySpread": 2,
    }


def test_the_cluster_autoscaler_provider_prefers_full_nodes() -> None:
    _, default = filters_and_scores(convert_policy(get_provider("DefaultProvider")))
    _, autoscaler = filters_and_scores(convert_policy(get_provider("ClusterAutoscalerProvider")))
    assert "NodeResourcesMostAllocated" not in default
    assert autoscaler.pop("NodeResourcesMostAllocated") == default.pop("NodeResourcesLeastAllocated")
    assert autoscaler == default


def test_predicates_run_in_a_fixed_order_independent_of_the_document() -> None:
    names = ["MatchInterPodAffinity", "CheckNodeMemoryPressure", "PodFitsPorts", "NoDiskConflict", "HostName"]
    filters, _ = filters_and_scores(
        convert_fields(predicates=[{"name": name} for name in ["CheckNodeCondition", *names]])
    )
    assert filters == [
        *("CheckNodeCondition", "NodeUnschedulable", "NodeName", "NodePorts", "VolumeRestrictions", "TaintToleration"),
        *("CheckNodeMemoryPressure", "InterPodAffinity"),
    ]


def test_a_plugin_filters_only_for_a_predicate_and_scores_only_for_a_priority() -> None:
    converted = convert_fields(
        predicates=[{"name": "MatchNodeSelector"}, {"name": "PodFitsResources"}],
        priorities=[{"name": "InterPodAffinityPriority", "weight": 3}, {"name": "NodeAffinityPriority", "weight": 4}],
    )
    filters, scores = filters_and_scores(converted)
    assert filters == ["NodeUnschedulable", "NodeAffinity", "NodeResourcesFit", "TaintToleration"]
    assert scores == {"NodeAffinity": 4, "InterPodAffinity": 3}


def test_entries_of_one_kind_become_one_plugin_with_their_total_weight() -> None:
    def preference(label: str, presence: bool) -> dict[str, Any]:
        return {"name": label, "weight": 3, "argument": {"labelPreference": {"label": label, "presence": presence}}}

    def anti_affinity(label: str) -> dict[str, Any]:
        return {"name": label, "weight": 2, "argument": {"serviceAntiAffinity": {"label": label}}}

    converted = convert_fields(
        predicates=[
            {"name": "A", "argument": {"labelsPresence": {"labels": ["a", "b"], "presence": True}}},
            {"name": "B", "argument": {"labelsPresence": {"labels": ["c"], "presence": True}}},
            {"name": "C", "argument": {"labelsPresence": {"labels": ["d"]}}},
            {"name": "D", "argument": {"serviceAffinity": {"labels": ["rack"]}}},
            {"name": "E", "argument": {"serviceAffinity": {"labels": ["row"]}}},
        ],
        priorities=[
            preference("x", True),
            preference("y", False),
            preference("z", False),
            anti_affinity("zone"),
            anti_affinity("rack"),
        ],
    )
    filters, scores = filters_and_scores(converted)
    assert filters == ["NodeUnschedulable", "TaintToleration", "NodeLabel", "ServiceAffinity"]
    assert scores == {"NodeLabel": 9, "ServiceAffinity": 4}
    assert plugin_config(converted) == {
        "NodeLabel": {
            "presentLabels": ["a", "b", "c"],
            "absentLabels": ["d"],
            "presentLabelsPreference": ["x"],
            "absentLabelsPreference": ["y", "z"],
        },
        "ServiceAffinity": {"affinityLabels": ["rack", "row"], "antiAffinityLabelsPreference": ["zone", "rack"]},
    }


def test_a_requested_to_capacity_ratio_keeps_its_shape_with_any_name() -> None:
    argument = {"shape": [{"utilization": 0, "score": 2}], "resources": [{"name": "cpu", "weight": 3}]}
    entry = {"name": "X", "weight": 5, "argument": {"requestedToCapacityRatioArguments": argument}}
    converted = convert_fields(predicates=[], priorities=[entry])
    assert filters_and_scores(converted)[1] == {"RequestedToCapacityRatio": 5}
    assert plugin_config(converted) == {"RequestedToCapacityRatio": argument}


def test_an_invalid_shape_is_reported_with_its_path_in_the_policy() -> None:
    entry = {"name": "X", "weight": 5, "argument": {"requestedToCapacityRatioArguments": {}}}
    with pytest.raises(ConfigError) as caught:
        wiring.build_setup_from_document({"kind": "Policy", "apiVersion": "v1", "priorities": [entry]}, "f")
    path = "priorities[0].argument.requestedToCapacityRatioArguments.shape"
    assert str(caught.value) == f"{path}: Required value: at least one point must be specified"


@pytest.mark.parametrize(
    ("weight", "expected"), [(0, {}), (1, {}), (7, {"InterPodAffinity": {"hardPodAffinityWeight": 7}})]
)
def test_the_hard_pod_affinity_weight_becomes_an_argument(weight: int, expected: dict[str, Any]) -> None:
    names = [{"name": "MatchInterPodAffinity"}]
    converted = convert_fields(predicates=names, priorities=[], hardPodAffinitySymmetricWeight=weight)
    assert plugin_config(converted) == expected


def test_default_topology_spread_constraints_are_disabled() -> None:
    assert plugin_config(convert_fields(predicates=[{"name": "EvenPodsSpread"}], priorities=[])) == {
        "PodTopologySpread": {"defaultingType": "List"}
    }


def test_all_fields_of_an_extender_are_converted() -> None:
    fields = {
        "urlPrefix": "https://x",
        "filterVerb": "f",
        "preemptVerb": "v",
        "prioritizeVerb": "p",
        "weight": 3,
        "bindVerb": "b",
        "enableHttps": True,
        "tlsConfig": {"insecure": True, "serverName": "s"},
        "httpTimeout": 1_500_000_000,
        "nodeCacheCapable": True,
        "managedResources": [{"name": "example.com/a", "ignoredByScheduler": True}],
        "ignorable": True,
    }
    (extender,) = convert_fields(predicates=[], priorities=[], extenders=[fields]).configuration.extenders
    assert extender == Extender(
        url_prefix="https://x",
        filter_verb="f",
        preempt_verb="v",
        prioritize_verb="p",
        weight=3,
        bind_verb="b",
        enable_https=True,
        tls_config=TLSConfig(insecure=True, server_name="s"),
        http_timeout=1.5,
        node_cache_capable=True,
        managed_resources=(ManagedResource("example.com/a", ignored_by_scheduler=True),),
        ignorable=True,
    )


def test_an_extender_without_a_timeout_has_five_seconds() -> None:
    converted = convert_fields(predicates=[], priorities=[], extenders=[{"urlPrefix": "https://x", "filterVerb": "f"}])
    assert converted.configuration.extenders[0].http_timeout == 5.0


def test_resources_ignored_by_the_scheduler_are_not_checked() -> None:
    resource = {"name": "example.com/a", "ignoredByScheduler": True}
    converted = convert_fields(predicates=[{"name": "PodFitsResources"}], extenders=[{"managedResources": [resource]}])
    options = wiring.build_setup(converted.configuration).profile_set.options["default-scheduler"]
    assert options["NodeResourcesFit"]["ignoredResources"] == ("example.com/a",)


@pytest.mark.parametrize(
    ("fields", "warning"),
    [
        (
            {"alwaysCheckAllPredicates": True},
            "alwaysCheckAllPredicates: not supported by KubeSchedulerConfiguration, which reports only the first "
            "plugin that rejects a node. The rejected nodes are the same",
        ),
        (
            {"predicates": [{"name": "HostName", "argument": {"labelsPresence": {}}}]},
            "predicates[0].argument: HostName takes no argument; the argument is ignored",
        ),
        (
            {"predicates": [{"name": "CheckNodeLabelPresence"}]},
            "predicates[0]: CheckNodeLabelPresence without an argument rejects no node",
        ),
        (
            {
                "priorities": [
                    {"name": "SelectorSpreadPriority", "weight": 1},
                    {"name": "ServiceSpreadingPriority", "weight": 5},
                ]
            },
            "priorities[1]: SelectorSpread is requested more than once; the last weight applies",
        ),
        (
            {"priorities": [{"name": "EqualPriority", "weight": 1}]},
            "EqualPriority: gives all nodes the same score, which needs no plugin",
        ),
    ],
    ids=["all predicates", "unexpected argument", "missing argument", "one plugin twice", "EqualPriority"],
)
def test_a_difference_in_behavior_is_a_warning(fields: dict[str, Any], warning: str) -> None:
    converted = convert_fields(**{"predicates": [], "priorities": [], **fields})
    assert warning in converted.warnings


@pytest.mark.parametrize(
    ("check_all", "reasons"),
    [
        (False, "1 Insufficient cpu, 1 node(s) were unschedulable"),
        (True, "1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 2 Insufficient cpu"),
    ],
    ids=["the first", "all"],
)
def test_a_node_has_the_first_failed_predicate_or_all_of_them_as_reasons(check_all: bool, reasons: str) -> None:
    names = [{"name": "PodFitsResources"}]
    converted = convert_fields(predicates=names, priorities=[], alwaysCheckAllPredicates=check_all)
    taint = {"key": "dedicated", "effect": "NoSchedule"}
    state = make_cluster(make_node("cordoned", unschedulable=True), make_node("tainted", taints=[taint]))
    cluster = state.snapshot()
    pod = cluster.make_pod_info(make_pod(requests={"cpu": "64"}))
    answer = find_nodes_that_pass_filters(
        pod, cluster, wiring.build_setup(converted.configuration).first_profile, wiring.make_runtime()
    )
    assert answer.format_message() == f"0/2 nodes are available: {reasons}."
