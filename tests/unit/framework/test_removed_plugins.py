"""Plugins that kube-scheduler has removed, in a v1 profile of today: where they can stand, and where not."""

from typing import Any

import pytest

from extender import wiring
from extender.config.faults import ConfigError

LIMITS = ["AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"]
CHECKS = ["CheckNodeCondition", "CheckNodeDiskPressure", "CheckNodeMemoryPressure", "CheckNodePIDPressure"]
RATING = [
    *("NodePreferAvoidPods", "NodeResourceLimits", "NodeResourcesLeastAllocated", "NodeResourcesMostAllocated"),
    *("RequestedToCapacityRatio", "SelectorSpread"),
]


def scheduling(**plugins: Any) -> wiring.Scheduling:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": plugins}],
    }
    return wiring.from_builtins(document, "f")


def enabled(*names: str) -> dict[str, Any]:
    return {"enabled": [{"name": name} for name in names]}


def test_all_of_them_can_stand_in_multi_point() -> None:
    profile = scheduling(multiPoint=enabled(*LIMITS, *CHECKS, *RATING, "NodeLabel", "ServiceAffinity")).first
    assert [each.name for each in profile.filters][-10:] == [*LIMITS, *CHECKS, "NodeLabel", "ServiceAffinity"]
    assert [each.plugin.name for each in profile.scores][-8:] == [*RATING, "NodeLabel", "ServiceAffinity"]


@pytest.mark.parametrize("name", LIMITS)
def test_the_old_volume_limits_are_refused_at_their_point_as_kube_scheduler_does(name: str) -> None:
    """G025."""
    with pytest.raises(ConfigError) as caught:
        scheduling(filter=enabled(name))
    version = "kubescheduler.config.k8s.io/v1"
    reason = f'was invalid in version "{version}" (KubeSchedulerConfiguration is version "{version}")'
    assert str(caught.value) == f'profiles[0].plugins.filter.enabled[0]: Invalid value: "{name}": {reason}'


def test_the_others_can_stand_at_their_points() -> None:
    profile = scheduling(filter=enabled(*CHECKS, "NodeLabel"), score=enabled(*RATING)).first
    assert [each.name for each in profile.filters][-5:] == [*CHECKS, "NodeLabel"]
    assert [each.plugin.name for each in profile.scores][-6:] == RATING


def test_none_of_them_is_enabled_by_default_or_shown_with_the_defaults() -> None:
    default = wiring.scheduling()
    assert not {*LIMITS, *CHECKS, *RATING, "NodeLabel", "ServiceAffinity"} & default.first.plugins.keys()
    assert "NodeLabel" not in default.defaulted()


@pytest.mark.parametrize(("text", "notes"), [("x", 1), ("5", 0)], ids=["a word", "a number"])
def test_a_limit_of_the_environment_that_is_none_is_told(
    monkeypatch: pytest.MonkeyPatch, text: str, notes: int
) -> None:
    """C041."""
    monkeypatch.setenv("KUBE_MAX_PD_VOLS", text)
    assert len(scheduling(multiPoint=enabled("EBSLimits")).notes) == notes
    assert wiring.scheduling().notes == ()
