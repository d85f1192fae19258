"""The feature gates that affect scheduling."""

import pytest

from extender.config.errors import ConfigError
from extender.config.feature_gates import SCHEDULING_FEATURES, FeatureGates, get_scheduling_defaults
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, RELEASES, Release


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_without_overrides_the_gates_of_the_release_have_their_defaults(release: Release) -> None:
    defaults = get_scheduling_defaults(release)
    gates = FeatureGates(release=release)
    assert {name for name in defaults if name in gates} == {name for name, value in defaults.items() if value}


def test_the_gates_of_1_37_that_are_on_by_default_and_were_not_in_1_36() -> None:
    """Source: pkg/features/kube_features.go, defaultVersionedKubernetesFeatureGates (1.37)."""
    before, after = FeatureGates(release=RELEASE_1_36), FeatureGates(release=RELEASE_1_37)
    names = {name for release in RELEASES.values() for name in get_scheduling_defaults(release)}
    assert {name for name in names if name in after and name not in before} == {
        "DRADeviceTaintRules", "StorageCapacityScoring", "VolumeLimitScaling"
    }  # fmt: skip
    assert not [name for name in names if name in before and name not in after]


def test_fractional_ranges_need_a_minimum_compatible_release_of_1_37() -> None:
    """Source: pkg/features/kube_features.go, DRAFractionalCapacityRange (1.37)."""
    assert "DRAFractionalCapacityRange" not in FeatureGates(release=RELEASE_1_37)


def test_overrides_enable_and_disable_gates() -> None:
    gates = FeatureGates({"GangScheduling": True, "DRADeviceTaints": False}, RELEASE_1_36)
    assert "GangScheduling" in gates
    assert "DRADeviceTaints" not in gates
    assert "DynamicResourceAllocation" in gates


def test_a_gate_that_another_gate_replaced_follows_it() -> None:
    gates = FeatureGates({"GenericWorkload": True}, RELEASE_1_37)
    assert "GangScheduling" in gates
    assert "WorkloadAwarePreemption" in gates
    assert "GangScheduling" not in FeatureGates(release=RELEASE_1_37)
    assert "GangScheduling" not in FeatureGates({"GenericWorkload": True}, RELEASE_1_36)


def test_a_gate_that_is_gone_stays_enabled_but_cannot_be_set() -> None:
    assert "SchedulerQueueingHints" in FeatureGates(release=RELEASE_1_37)
    with pytest.raises(ConfigError, match='unknown feature gate "SchedulerQueueingHints"'):
        FeatureGates({"SchedulerQueueingHints": False}, RELEASE_1_37)


def test_an_unknown_gate_is_rejected_with_a_suggestion() -> None:
    with pytest.raises(ConfigError) as caught:
        FeatureGates({"GenericWorkloads": True})
    assert str(caught.value) == (
        'featureGates: unknown feature gate "GenericWorkloads"; did you mean "GenericWorkload"?'
    )


def test_every_scheduling_gate_exists_in_a_release() -> None:
    assert {name for release in RELEASES.values() for name in get_scheduling_defaults(release)} == SCHEDULING_FEATURES
