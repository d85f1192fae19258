"""What becomes of a Policy: which plugins, in which order, with which weights and arguments; and what is told."""

from typing import Any

import pytest

from extender import wiring
from extender.config.load import load
from extender.config.model import Extender, ManagedResource, TLSConfig
from extender.decide.feasible import feasible
from extender.policy import document
from extender.policy.convert import Converted, convert
from extender.policy.providers import provider
from extender.policy.text import text
from tests.build import a_cluster, a_node, a_pod

MANDATORY = ["NodeUnschedulable", "TaintToleration"]


def converted(**fields: Any) -> Converted:
    written = document.from_builtins({"kind": "Policy", "apiVersion": "v1", **fields}, "f")
    return convert(written.policy, written.notes)


def deciding(found: Converted) -> tuple[list[str], dict[str, int]]:
    """The plugins that filter, in order, and those that score, with their weights, as the engine gets them."""
    profile = wiring.scheduling(found.configuration).first
    return [plugin.name for plugin in profile.filters], {each.plugin.name: each.weight for each in profile.scores}


def args(found: Converted) -> dict[str, Any]:
    return dict(found.configuration.profiles[0].plugin_config)


def test_empty_lists_leave_what_is_mandatory_and_no_scores() -> None:
    """C013, C050."""
    assert deciding(converted(predicates=[], priorities=[])) == (MANDATORY, {})


def test_absent_lists_are_those_of_the_default_provider() -> None:
    """C013, C068, C071."""
    filters, scores = deciding(converted())
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


def test_the_provider_for_autoscaled_clusters_prefers_full_nodes() -> None:
    """C069."""
    _, default = deciding(convert(provider("DefaultProvider")))
    _, autoscaler = deciding(convert(provider("ClusterAutoscalerProvider")))
    assert "NodeResourcesMostAllocated" not in default
    assert autoscaler.pop("NodeResourcesMostAllocated") == default.pop("NodeResourcesLeastAllocated")
    assert autoscaler == default


def test_predicates_run_in_the_fixed_order_whatever_the_order_of_the_document() -> None:
    """C019."""
    names = ["MatchInterPodAffinity", "CheckNodeMemoryPressure", "PodFitsPorts", "NoDiskConflict", "HostName"]
    filters, _ = deciding(converted(predicates=[{"name": name} for name in ["CheckNodeCondition", *names]]))
    assert filters == [
        *("CheckNodeCondition", "NodeUnschedulable", "NodeName", "NodePorts", "VolumeRestrictions", "TaintToleration"),
        *("CheckNodeMemoryPressure", "InterPodAffinity"),
    ]


def test_a_plugin_filters_only_if_a_predicate_and_scores_only_if_a_priority_asks_for_it() -> None:
    found = converted(
        predicates=[{"name": "MatchNodeSelector"}, {"name": "PodFitsResources"}],
        priorities=[{"name": "InterPodAffinityPriority", "weight": 3}, {"name": "NodeAffinityPriority", "weight": 4}],
    )
    filters, scores = deciding(found)
    assert filters == ["NodeUnschedulable", "NodeAffinity", "NodeResourcesFit", "TaintToleration"]
    assert scores == {"NodeAffinity": 4, "InterPodAffinity": 3}


def test_entries_of_one_kind_become_one_plugin_whose_weight_counts_them() -> None:
    """C034, C065, C066, C080."""

    def preference(label: str, presence: bool) -> dict[str, Any]:
        return {"name": label, "weight": 3, "argument": {"labelPreference": {"label": label, "presence": presence}}}

    def apart(label: str) -> dict[str, Any]:
        return {"name": label, "weight": 2, "argument": {"serviceAntiAffinity": {"label": label}}}

    found = converted(
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
            apart("zone"),
            apart("rack"),
        ],
    )
    filters, scores = deciding(found)
    assert filters == ["NodeUnschedulable", "TaintToleration", "NodeLabel", "ServiceAffinity"]
    assert scores == {"NodeLabel": 9, "ServiceAffinity": 4}
    assert args(found) == {
        "NodeLabel": {
            "presentLabels": ["a", "b", "c"],
            "absentLabels": ["d"],
            "presentLabelsPreference": ["x"],
            "absentLabelsPreference": ["y", "z"],
        },
        "ServiceAffinity": {"affinityLabels": ["rack", "row"], "antiAffinityLabelsPreference": ["zone", "rack"]},
    }


def test_a_ratio_takes_its_shape_along_whatever_its_name() -> None:
    """C058, C081."""
    argument = {"shape": [{"utilization": 0, "score": 2}], "resources": [{"name": "cpu", "weight": 3}]}
    entry = {"name": "X", "weight": 5, "argument": {"requestedToCapacityRatioArguments": argument}}
    found = converted(predicates=[], priorities=[entry])
    assert deciding(found)[1] == {"RequestedToCapacityRatio": 5}
    assert args(found) == {"RequestedToCapacityRatio": argument}


def test_a_shape_that_is_wrong_is_told_with_its_place_in_the_policy() -> None:
    """G039."""
    entry = {"name": "X", "weight": 5, "argument": {"requestedToCapacityRatioArguments": {}}}
    with pytest.raises(wiring.ConfigError) as caught:
        wiring.from_builtins({"kind": "Policy", "apiVersion": "v1", "priorities": [entry]}, "f")
    where = "priorities[0].argument.requestedToCapacityRatioArguments.shape"
    assert str(caught.value) == f"{where}: Required value: at least one point must be specified"


@pytest.mark.parametrize(
    ("written", "wanted"), [(0, {}), (1, {}), (7, {"InterPodAffinity": {"hardPodAffinityWeight": 7}})]
)
def test_the_weight_of_hard_affinity_goes_to_its_plugin(written: int, wanted: dict[str, Any]) -> None:
    """C097."""
    names = [{"name": "MatchInterPodAffinity"}]
    found = converted(predicates=names, priorities=[], hardPodAffinitySymmetricWeight=written)
    assert args(found) == wanted


def test_the_default_spread_constraints_of_today_stay_off() -> None:
    assert args(converted(predicates=[{"name": "EvenPodsSpread"}], priorities=[])) == {
        "PodTopologySpread": {"defaultingType": "List"}
    }


def test_an_extender_keeps_all_it_has() -> None:
    """C075."""
    written = {
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
    (extender,) = converted(predicates=[], priorities=[], extenders=[written]).configuration.extenders
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


def test_resources_that_an_extender_minds_are_not_checked() -> None:
    """C014, F040."""
    resource = {"name": "example.com/a", "ignoredByScheduler": True}
    found = converted(predicates=[{"name": "PodFitsResources"}], extenders=[{"managedResources": [resource]}])
    options = wiring.scheduling(found.configuration).registry.options["default-scheduler"]
    assert options["NodeResourcesFit"]["ignoredResources"] == ("example.com/a",)


@pytest.mark.parametrize(
    ("fields", "note"),
    [
        (
            {"alwaysCheckAllPredicates": True},
            "alwaysCheckAllPredicates: a KubeSchedulerConfiguration has no equal; there a node is told the first "
            "plugin that refuses it. Which nodes are refused is the same",
        ),
        (
            {"predicates": [{"name": "HostName", "argument": {"labelsPresence": {}}}]},
            "predicates[0].argument: HostName takes none; it is passed over",
        ),
        (
            {"predicates": [{"name": "CheckNodeLabelPresence"}]},
            "predicates[0]: CheckNodeLabelPresence without an argument refuses nothing",
        ),
        (
            {
                "priorities": [
                    {"name": "SelectorSpreadPriority", "weight": 1},
                    {"name": "ServiceSpreadingPriority", "weight": 5},
                ]
            },
            "priorities[1]: SelectorSpread was asked for before; the weight given last counts",
        ),
        (
            {"priorities": [{"name": "EqualPriority", "weight": 1}]},
            "EqualPriority: rates all nodes alike, which needs no plugin",
        ),
    ],
    ids=["checking all", "an argument too many", "an argument too few", "one plugin twice", "nothing to rate by"],
)
def test_what_has_no_equal_is_told(fields: dict[str, Any], note: str) -> None:
    found = converted(**{"predicates": [], "priorities": [], **fields})
    assert note in found.notes


@pytest.mark.parametrize("name", ["DefaultProvider", "ClusterAutoscalerProvider"])
def test_the_text_loads_back_equal(name: str) -> None:
    found = convert(provider(name))
    assert load(text(found.configuration).encode(), "f") == found.configuration


def test_the_text_says_no_more_than_it_must() -> None:
    assert (
        text(converted(predicates=[], priorities=[]).configuration)
        == """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      disabled:
      - name: '*'
      enabled:
      - name: SchedulingGates
      - name: PrioritySort
      - name: NodeUnschedulable
      - name: TaintToleration
      - name: DefaultPreemption
      - name: DefaultBinder
    preScore:
      disabled:
      - name: TaintToleration
    score:
      disabled:
      - name: TaintToleration
  schedulerName: default-scheduler
"""
    )


@pytest.mark.parametrize(
    ("every", "reasons"),
    [
        (False, "1 Insufficient cpu, 1 node(s) were unschedulable"),
        (True, "1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 2 Insufficient cpu"),
    ],
    ids=["the first", "all"],
)
def test_a_node_is_told_the_first_predicate_it_fails_or_all_of_them(every: bool, reasons: str) -> None:
    """C018."""
    names = [{"name": "PodFitsResources"}]
    found = converted(predicates=names, priorities=[], alwaysCheckAllPredicates=every)
    taint = {"key": "dedicated", "effect": "NoSchedule"}
    state = a_cluster(a_node("cordoned", unschedulable=True), a_node("tainted", taints=[taint]))
    cluster = state.snapshot()
    pod = cluster.query(a_pod(requests={"cpu": "64"}))
    answer = feasible(pod, cluster, wiring.scheduling(found.configuration).first, wiring.engine())
    assert answer.message() == f"0/2 nodes are available: {reasons}."
