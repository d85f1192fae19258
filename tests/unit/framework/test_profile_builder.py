"""Profiles with plugins that kube-scheduler has removed, and with errors."""

from typing import Any

import pytest

from extender.app import wiring
from extender.config.errors import ConfigError
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASES
from extender.testing import make_cluster, run_profile

VOLUME_LIMITS = ["AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"]
CONDITION_CHECKS = ["CheckNodeCondition", "CheckNodeDiskPressure", "CheckNodeMemoryPressure", "CheckNodePIDPressure"]
SCORES = [
    *("NodePreferAvoidPods", "NodeResourceLimits", "NodeResourcesLeastAllocated", "NodeResourcesMostAllocated"),
    *("RequestedToCapacityRatio", "SelectorSpread"),
]


def build(plugin_config: Any = (), **plugins: Any) -> wiring.SchedulerSetup:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": plugins, "pluginConfig": plugin_config}],
    }
    return wiring.build_setup_from_document(document, "f")


def enabled(*names: str) -> dict[str, Any]:
    return {"enabled": [{"name": name} for name in names]}


def test_removed_plugins_can_be_enabled_at_multi_point() -> None:
    profile = build(
        multiPoint=enabled(*VOLUME_LIMITS, *CONDITION_CHECKS, *SCORES, "NodeLabel", "ServiceAffinity")
    ).first_profile
    assert [plugin.name for plugin in profile.filter_plugins][-10:] == [
        *VOLUME_LIMITS,
        *CONDITION_CHECKS,
        "NodeLabel",
        "ServiceAffinity",
    ]
    assert [weighted.plugin.name for weighted in profile.score_plugins][-8:] == [
        *SCORES,
        "NodeLabel",
        "ServiceAffinity",
    ]


@pytest.mark.parametrize("name", VOLUME_LIMITS)
def test_the_removed_volume_limits_are_rejected_at_filter_as_in_kube_scheduler(name: str) -> None:
    """Source: pkg/scheduler/apis/config/validation/validation.go, invalidPluginsByVersion (1.36)."""
    with pytest.raises(ConfigError) as caught:
        build(filter=enabled(name))
    reason = 'was invalid in version "v1" (KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")'
    assert str(caught.value) == f'profiles[0].plugins.filter.enabled[0]: Invalid value: "{name}": {reason}'


def test_a_profile_without_arguments_that_extenders_change_is_rejected_as_in_kube_scheduler() -> None:
    """Source: pkg/scheduler/scheduler.go, buildExtenders (1.36)."""
    without_fit = {"plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}}
    document: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{**without_fit, "pluginConfig": [{"name": "NodeResourcesFit", "args": {}}]}],
        "extenders": [
            {
                "urlPrefix": "http://e",
                "filterVerb": "filter",
                "managedResources": [{"name": "example.com/a", "ignoredByScheduler": True}],
            }
        ],
    }
    assert wiring.build_setup_from_document(document, "f").warnings
    document["profiles"] = [without_fit]
    with pytest.raises(ConfigError) as caught:
        wiring.build_setup_from_document(document, "f")
    assert str(caught.value) == "profiles[0].pluginConfig: can't find NodeResourcesFitArgs in plugin config"
    document["extenders"][0]["managedResources"] = [{"name": "example.com/a"}]
    assert wiring.build_setup_from_document(document, "f").profiles


def test_the_other_removed_plugins_can_be_enabled_at_their_extension_points() -> None:
    profile = build(filter=enabled(*CONDITION_CHECKS, "NodeLabel"), score=enabled(*SCORES)).first_profile
    assert [plugin.name for plugin in profile.filter_plugins][-5:] == [*CONDITION_CHECKS, "NodeLabel"]
    assert [weighted.plugin.name for weighted in profile.score_plugins][-6:] == SCORES


def test_no_removed_plugin_is_enabled_by_default_or_rendered_with_the_defaults() -> None:
    default = wiring.build_setup()
    assert (
        not {*VOLUME_LIMITS, *CONDITION_CHECKS, *SCORES, "NodeLabel", "ServiceAffinity"}
        & default.first_profile.plugins.keys()
    )
    assert "NodeLabel" not in default.render_with_defaults()


def test_the_written_arguments_are_those_of_the_enabled_plugins() -> None:
    """A plugin that is disabled at each of its extension points is still enabled at multiPoint.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.pluginsNeeded (1.36).
    """
    disabled = {"disabled": [{"name": "InterPodAffinity"}]}
    args = [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 3}}]
    assert "InterPodAffinityArgs" not in build(args, multiPoint=disabled).render_with_defaults()
    points = dict.fromkeys(("preFilter", "filter", "preScore", "score"), disabled)
    setup = build(**points)
    assert "InterPodAffinity" not in setup.first_profile.plugins
    assert "InterPodAffinityArgs" in setup.render_with_defaults()


@pytest.mark.parametrize(("text", "warnings"), [("x", 1), ("5", 0)], ids=["text", "a number"])
def test_an_invalid_limit_in_the_environment_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, text: str, warnings: int
) -> None:
    """Source: pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go, getMaxVolLimitFromEnv (1.21)."""
    monkeypatch.setenv("KUBE_MAX_PD_VOLS", text)
    assert len(build(multiPoint=enabled("EBSLimits")).warnings) == warnings
    assert wiring.build_setup().warnings == ()


def test_all_errors_of_a_configuration_are_reported_at_once() -> None:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {"filter": enabled("NodeNam")},
                "pluginConfig": [
                    {"name": "CheckNodeCondition", "args": {"x": 1}},
                    {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 101}},
                ],
            }
        ],
    }
    with pytest.raises(ConfigError) as caught:
        wiring.build_setup_from_document(document, "f")
    assert [str(error) for error in caught.value.errors] == [
        'profiles[0].plugins.filter.enabled: FilterPlugin "NodeNam" does not exist; did you mean "NodeName"?',
        "profiles[0].pluginConfig[0].args: CheckNodeCondition takes no arguments, got x",
        "profiles[0].pluginConfig[1].args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]",
    ]


class Broken:
    """A plugin that cannot be created."""

    name = "Broken"

    def __init__(self) -> None:
        raise RuntimeError("no licence")

    def filter(self, pod: Any, nodes: Any, state: Any) -> Any:
        """Reject no node."""


def test_a_plugin_that_cannot_be_created_is_an_error_of_each_profile() -> None:
    plugins = {"filter": enabled("Broken")}
    profiles = [{"schedulerName": name, "plugins": plugins} for name in ("one", "two")]
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": profiles,
    }
    with pytest.raises(ConfigError) as caught:
        run_profile(document, make_cluster(), "web", Broken)
    places = [str(error).split(" (")[0] for error in caught.value.errors]
    assert places == [
        f'profiles[{position}]: initializing plugin "Broken": RuntimeError: no licence' for position in (0, 1)
    ]


PRE_FILTER_PLUGINS = [
    *("NodeAffinity", "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding"),
    *("VolumeZone", "PodTopologySpread", "InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures"),
]


@pytest.mark.parametrize(
    ("version", "pre_filter_head", "filter_head"),
    [
        ("1.36", [], ["NodeUnschedulable", "NodeName", "TaintToleration"]),
        (
            "1.37",
            ["NodeName", "NodeUnschedulable", "TaintToleration"],
            ["NodeName", "NodeUnschedulable", "TaintToleration"],
        ),
    ],
)
def test_the_default_profile_has_the_pre_filter_and_filter_plugins_of_its_release(
    version: str, pre_filter_head: list[str], filter_head: list[str]
) -> None:
    """Source: pkg/scheduler/apis/config/testing/defaults/defaults.go, ExpandedPluginsV1 (1.36, 1.37)."""
    profile = wiring.build_setup(gates=FeatureGates(release=RELEASES[version])).first_profile
    assert [plugin.name for plugin in profile.pre_filter_plugins] == [*pre_filter_head, *PRE_FILTER_PLUGINS]
    assert [plugin.name for plugin in profile.filter_plugins] == [*filter_head, *PRE_FILTER_PLUGINS]
