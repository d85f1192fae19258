"""Plugins of each extension point, in order and with weights.

Source: pkg/scheduler/apis/config/v1/default_plugins.go, mergePluginSet; pkg/scheduler/framework/runtime/framework.go,
frameworkImpl.expandMultiPointPlugins, getValidScoreWeights, NewFramework; pkg/scheduler/profile/profile.go,
cfgValidator.validate (1.36).
"""

import dataclasses
from typing import Any

import pytest

from extender.app.wiring import build_setup, build_setup_from_document
from extender.config.defaults import make_default_profile, merge_with_default_plugins
from extender.config.errors import FieldError
from extender.config.expand import expand_profile, expand_profiles
from extender.config.feature_gates import FeatureGates
from extender.config.model import Plugin, Plugins, PluginSet, Profile
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release

POINTS = {
    "SchedulingGates": "preEnqueue",
    "PrioritySort": "queueSort",
    "NodeUnschedulable": "filter",
    "NodeName": "filter",
    "TaintToleration": "filter preScore score",
    "NodeAffinity": "preFilter filter preScore score",
    "NodePorts": "preFilter filter",
    "NodeResourcesFit": "preFilter filter preScore score placementScore",
    "VolumeRestrictions": "preFilter filter",
    "NodeVolumeLimits": "preFilter filter",
    "VolumeBinding": "preFilter filter reserve preBind preScore score",
    "VolumeZone": "preFilter filter",
    "PodTopologySpread": "preFilter filter preScore score",
    "InterPodAffinity": "preFilter filter preScore score",
    "DynamicResources": "preEnqueue preFilter filter postFilter score reserve preBind",
    "DefaultPreemption": "preEnqueue postFilter",
    "NodeResourcesBalancedAllocation": "preScore score",
    "ImageLocality": "score",
    "DefaultBinder": "bind",
    "NodeDeclaredFeatures": "preFilter filter",
    "Sort": "queueSort",
    "Place": "placementGenerate",
    "Place2": "placementGenerate",
    "A": "filter score",
    "B": "filter score",
    "C": "filter score",
}


def get_extension_points(name: str) -> frozenset[str] | None:
    return frozenset(POINTS[name].split()) if name in POINTS else None


def plugins(*names: str) -> tuple[Plugin, ...]:
    return tuple(Plugin(name.partition("=")[0], int(name.partition("=")[2] or 0)) for name in names)


def enabled(*names: str) -> PluginSet:
    return PluginSet(plugins(*names))


def disabled(*names: str) -> PluginSet:
    return PluginSet(disabled=plugins(*names))


def customized(**sets: PluginSet) -> Profile:
    return Profile("s", plugins=merge_with_default_plugins(Plugins(**sets), RELEASE_1_36), path="profiles[0]")


def minimal(**sets: PluginSet) -> Profile:
    """Return a profile with the required plugins only."""
    required = {"queue_sort": enabled("PrioritySort"), "bind": enabled("DefaultBinder")}
    return Profile("s", plugins=Plugins(**{**required, **sets}), path="profiles[0]")


DEFAULT = {
    "preEnqueue": "SchedulingGates DynamicResources DefaultPreemption",
    "queueSort": "PrioritySort",
    "preFilter": "NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone "
    "PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures",
    "filter": "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions "
    "NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity DynamicResources "
    "NodeDeclaredFeatures",
    "postFilter": "DynamicResources DefaultPreemption",
    "preScore": "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread InterPodAffinity "
    "NodeResourcesBalancedAllocation",
    "score": "TaintToleration=3 NodeAffinity=2 NodeResourcesFit=1 VolumeBinding=1 PodTopologySpread=2 "
    "InterPodAffinity=2 DynamicResources=2 NodeResourcesBalancedAllocation=1 ImageLocality=1",
    "reserve": "VolumeBinding DynamicResources",
    "permit": "",
    "preBind": "VolumeBinding DynamicResources",
    "bind": "DefaultBinder",
    "postBind": "",
    "placementGenerate": "",
    "placementScore": "NodeResourcesFit=1",
}


@pytest.mark.parametrize(("point", "names"), DEFAULT.items(), ids=DEFAULT)
def test_the_default_profile_has_kube_schedulers_plugins(point: str, names: Any) -> None:
    expanded, errors = expand_profile(make_default_profile(release=RELEASE_1_36), get_extension_points)
    assert errors == []
    assert expanded[point] == plugins(*names.split())


ORDERS = {
    "multiPoint plugins have the order of multiPoint": (
        minimal(multi_point=enabled("B", "A")),
        "score",
        "B=1 A=1",
    ),
    "plugins listed again at the point come first, in the point's order": (
        minimal(multi_point=enabled("A", "B", "C"), score=enabled("C=5", "B=4")),
        "score",
        "C=5 B=4 A=1",
    ),
    "plugins only listed at the point come last": (
        minimal(multi_point=enabled("A"), score=enabled("C=5", "B")),
        "score",
        "A=1 C=5 B=1",
    ),
    "all three kinds together": (
        minimal(multi_point=enabled("A", "B"), score=enabled("C", "B=9")),
        "score",
        "B=9 A=1 C=1",
    ),
    "a plugin disabled at the point is not expanded there": (
        minimal(multi_point=enabled("A", "B"), filter=disabled("A")),
        "filter",
        "B",
    ),
    "a plugin disabled at one point stays at the others": (
        minimal(multi_point=enabled("A", "B"), filter=disabled("A")),
        "score",
        "A=1 B=1",
    ),
    "a plugin both disabled and enabled at the point stays as listed": (
        minimal(multi_point=enabled("A", "B"), filter=PluginSet(plugins("A"), plugins("A"))),
        "filter",
        "B A",
    ),
    "a star at the point leaves the plugins listed there": (
        minimal(multi_point=enabled("A", "B"), score=PluginSet(plugins("C=2", "B"), plugins("*"))),
        "score",
        "C=2 B=1",
    ),
    "the weight comes from multiPoint where the point gives none": (
        minimal(multi_point=enabled("A=6")),
        "score",
        "A=6",
    ),
    "an entry at the point without a weight has weight 1": (
        minimal(multi_point=enabled("A=6"), score=enabled("A")),
        "score",
        "A=1",
    ),
    "a plugin multiPoint disables runs where a point enables it": (
        customized(
            multi_point=disabled("ImageLocality"), score=PluginSet(plugins("ImageLocality=7"), plugins("ImageLocality"))
        ),
        "score",
        "TaintToleration=3 NodeAffinity=2 NodeResourcesFit=1 VolumeBinding=1 PodTopologySpread=2 InterPodAffinity=2 "
        "DynamicResources=2 NodeResourcesBalancedAllocation=1 ImageLocality=7",
    ),
    "an enabled default plugin comes first at its point": (
        customized(filter=PluginSet(plugins("NodeAffinity"), plugins("VolumeZone"))),
        "filter",
        "NodeAffinity NodeUnschedulable NodeName TaintToleration NodePorts NodeResourcesFit VolumeRestrictions "
        "NodeVolumeLimits VolumeBinding PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures",
    ),
    "a default plugin reweighted in multiPoint keeps its position": (
        customized(multi_point=enabled("NodeAffinity=9")),
        "score",
        "TaintToleration=3 NodeAffinity=9 NodeResourcesFit=1 VolumeBinding=1 PodTopologySpread=2 InterPodAffinity=2 "
        "DynamicResources=2 NodeResourcesBalancedAllocation=1 ImageLocality=1",
    ),
    "a star in multiPoint leaves only custom plugins": (
        customized(multi_point=PluginSet(plugins("A", "PrioritySort", "DefaultBinder"), plugins("*"))),
        "filter",
        "A",
    ),
}


@pytest.mark.parametrize(("profile", "point", "names"), ORDERS.values(), ids=ORDERS)
def test_a_point_has_its_plugins_in_order(profile: Any, point: str, names: Any) -> None:
    expanded, errors = expand_profile(profile, get_extension_points)
    assert errors == []
    assert expanded[point] == plugins(*names.split())


ERRORS = {
    "an unknown plugin at a point": (
        customized(filter=enabled("NodeAfinity")),
        'profiles[0].plugins.filter.enabled: FilterPlugin "NodeAfinity" does not exist; did you mean "NodeAffinity"?',
    ),
    "an unknown plugin in multiPoint is named by the first point": (
        customized(multi_point=enabled("Unlike")),
        'profiles[0].plugins.multiPoint.enabled: PreFilterPlugin "Unlike" does not exist; is its package installed?',
    ),
    "the first point is one that is expanded": (
        customized(multi_point=enabled("Unlike"), pre_filter=disabled("*")),
        'profiles[0].plugins.multiPoint.enabled: FilterPlugin "Unlike" does not exist; is its package installed?',
    ),
    "a plugin at a point it does not implement": (
        customized(pre_bind=enabled("NodeName")),
        'profiles[0].plugins.preBind.enabled: plugin "NodeName" does not extend PreBindPlugin plugin',
    ),
    "a plugin twice at a point": (
        customized(score=enabled("A", "A=2")),
        'profiles[0].plugins.score.enabled: plugin "A" already registered as "ScorePlugin"',
    ),
    "a plugin twice in multiPoint": (
        minimal(multi_point=enabled("DefaultPreemption", "DefaultPreemption"), pre_enqueue=disabled("*")),
        'profiles[0].plugins.multiPoint.enabled: plugin "DefaultPreemption" already registered as "PostFilterPlugin"',
    ),
    "no queue sort plugin": (
        customized(queue_sort=disabled("*")),
        'profiles[0].plugins.queueSort: only one queue sort plugin required for profile with scheduler name "s", '
        "but got 0",
    ),
    "two queue sort plugins": (
        customized(queue_sort=enabled("Sort")),
        'profiles[0].plugins.queueSort: only one queue sort plugin required for profile with scheduler name "s", '
        "but got 2: PrioritySort, Sort; name the others in queueSort.disabled",
    ),
    "no bind plugin": (
        customized(bind=disabled("DefaultBinder")),
        'profiles[0].plugins.bind: at least one bind plugin is needed for profile with scheduler name "s"',
    ),
    "two placement generators": (
        customized(placement_generate=enabled("Place", "Place2")),
        "profiles[0].plugins.placementGenerate: at most one placement generate plugin is allowed for profile with "
        'scheduler name "s"',
    ),
    "weights that overflow together": (
        minimal(score=enabled(f"A={2**63 // 200}", f"B={2**63 // 200}", "C=2")),
        "profiles[0].plugins.score.enabled: score plugins: total score of Score plugins could overflow",
    ),
    "a weight after a negative sum": (
        minimal(score=enabled("A=-2", "B=1")),
        "profiles[0].plugins.score.enabled: score plugins: total score of Score plugins could overflow",
    ),
    "a weight that overflows counts even where the plugin is disabled": (
        minimal(multi_point=enabled(f"A={2**62}"), score=disabled("A")),
        "profiles[0].plugins.score.enabled: score plugins: total score of Score plugins could overflow",
    ),
}


@pytest.mark.parametrize(("profile", "message"), ERRORS.values(), ids=ERRORS)
def test_an_error_has_kube_schedulers_message(profile: Any, message: str) -> None:
    assert [str(error) for error in expand_profile(profile, get_extension_points)[1]] == [message]


def test_the_last_weight_may_be_negative_as_in_kube_scheduler() -> None:
    assert expand_profile(minimal(score=enabled("A=1", "B=-2")), get_extension_points)[1] == []


def test_all_errors_of_a_profile_are_reported_together() -> None:
    profile = minimal(filter=enabled("Unlike", "ImageLocality"), score=enabled("A", "A"))
    assert [error.message for error in expand_profile(profile, get_extension_points)[1]] == [
        'FilterPlugin "Unlike" does not exist; is its package installed?',
        'plugin "ImageLocality" does not extend FilterPlugin plugin',
        'plugin "A" already registered as "ScorePlugin"',
    ]


def test_a_known_name_without_a_plugin_is_invalid_and_not_missing() -> None:
    """Its own error says what is wrong; a similar name would be no help."""
    names = {"Mine": "", "Mini": "", "mine": "Mine"}
    _, errors = expand_profile(minimal(filter=enabled("Mine")), get_extension_points, names)
    assert [error.message for error in errors] == ['FilterPlugin "Mine" is installed, but invalid']
    _, errors = expand_profile(minimal(filter=enabled("mine")), get_extension_points, names)
    want = 'FilterPlugin "mine" does not exist; its entry point has the plugin "Mine"'
    assert [error.message for error in errors] == [want]


def test_the_suggestion_is_one_of_the_known_names() -> None:
    _, errors = expand_profile(minimal(filter=enabled("MyPlugni")), get_extension_points, known_names={"MyPlugin": ""})
    assert [error.message for error in errors] == ['FilterPlugin "MyPlugni" does not exist; did you mean "MyPlugin"?']


def test_profiles_are_expanded_by_scheduler_name() -> None:
    expanded, errors = expand_profiles([make_default_profile("a"), make_default_profile("b")], get_extension_points)
    assert errors == []
    assert list(expanded) == ["a", "b"]


def test_profiles_that_cannot_sort_are_not_compared() -> None:
    _, errors = expand_profiles([customized(queue_sort=disabled("*"))], get_extension_points)
    assert [error.message for error in errors] == [
        'only one queue sort plugin required for profile with scheduler name "s", but got 0'
    ]


def test_an_unknown_plugin_that_is_expanded_at_no_point_is_ignored() -> None:
    stars = dict.fromkeys(set(Plugins.__struct_fields__) - {"multi_point", "queue_sort", "bind"}, disabled("*"))
    needed = {
        "queue_sort": PluginSet(plugins("PrioritySort"), plugins("*")),
        "bind": PluginSet(plugins("DefaultBinder"), plugins("*")),
    }
    assert expand_profile(minimal(multi_point=enabled("Unlike"), **stars, **needed), get_extension_points)[1] == []


def at(index: int, profile: Profile, name: str) -> Profile:
    return dataclasses.replace(profile, scheduler_name=name, path=f"profiles[{index}]")


CONFLICTS = {
    "a profile without a name": (
        [at(0, minimal(), "")],
        FieldError("profiles[0].schedulerName", "scheduler name is needed"),
    ),
    "two profiles of one name": (
        [at(0, minimal(), "a"), at(1, minimal(), "a")],
        FieldError("profiles[1].schedulerName", 'duplicate profile with scheduler name "a"'),
    ),
    "profiles that sort differently": (
        [at(0, minimal(), "a"), at(1, minimal(queue_sort=enabled("Sort")), "b")],
        FieldError(
            "profiles[1].plugins.queueSort",
            'different queue sort plugins for profile "b": "Sort", first: "PrioritySort"',
        ),
    ),
    "profiles that sort with different arguments": (
        [at(0, minimal(), "a"), dataclasses.replace(at(1, minimal(), "b"), plugin_config={"PrioritySort": {"x": 1}})],
        FieldError("profiles[1].plugins.queueSort", 'different queue sort plugin args for profile "b"'),
    ),
    "no profile at all": ([], FieldError("profiles", "at least one profile is required")),
}


@pytest.mark.parametrize(("profiles", "error"), CONFLICTS.values(), ids=CONFLICTS)
def test_profiles_with_a_conflict_are_rejected(profiles: Any, error: str) -> None:
    assert expand_profiles(profiles, get_extension_points)[1] == [error]


def list_warnings(plugins: dict[str, Any], *names: str) -> tuple[str, ...]:
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    profile = {"plugins": plugins, "pluginConfig": [{"name": name, "args": {}} for name in names]}
    return build_setup_from_document({**head, "profiles": [profile]}, "scheduler.yaml").warnings


def test_a_misspelled_plugin_is_named_with_the_right_spelling() -> None:
    assert list_warnings({}, "NodeAffinity", "NodeResourceFit") == (
        'profiles[0].pluginConfig[1].args: no effect: the profile does not enable plugin "NodeResourceFit"; '
        'did you mean "NodeResourcesFit"?',
    )


def test_a_plugin_that_is_not_enabled_is_named() -> None:
    want = 'profiles[0].pluginConfig[0].args: no effect: the profile does not enable plugin "GpuShare"'
    assert list_warnings({}, "GpuShare") == (want,)
    assert list_warnings({"multiPoint": {"enabled": [{"name": "GpuShare"}]}}, "GpuShare") == ()


def test_arguments_of_an_in_tree_plugin_without_arguments_are_a_warning() -> None:
    """Source: kube-scheduler/config/v1/types.go, PluginConfig.decodeNestedObjects (1.36)."""
    profile = {"pluginConfig": [{"name": "NodeName", "args": {"x": 1}}, {"name": "NodePorts", "args": {}}]}
    document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    setup = build_setup_from_document({**document, "profiles": [profile]}, "scheduler.yaml")
    assert setup.warnings == ('profiles[0].pluginConfig[0].args: no effect: plugin "NodeName" has no arguments',)


def test_a_disabled_plugin_is_named() -> None:
    disabled = {"multiPoint": {"disabled": [{"name": "NodeAffinity"}]}}
    want = 'profiles[0].pluginConfig[0].args: no effect: the profile does not enable plugin "NodeAffinity"'
    assert list_warnings(disabled, "NodeAffinity") == (want,)


@pytest.mark.parametrize("release", [RELEASE_1_36, RELEASE_1_37])
def test_the_default_configuration_has_no_unused_arguments(release: Release) -> None:
    gates = FeatureGates(release=release)
    document = build_setup(gates=gates).build_document()
    assert build_setup_from_document(document, "scheduler.yaml", gates).warnings == ()
