"""Parsing and validation of the flag `--feature-gates`."""

import pytest

from extender.config.errors import ConfigError
from extender.config.feature_gate_specs import FEATURE_SPECS, FeatureSpec
from extender.config.feature_gates_flag import (
    get_values_by_gate_and_stage,
    parse_feature_gates,
    select_scheduling_features,
)
from extender.config.releases import RELEASE_1_36, RELEASE_1_37


def test_the_gates_of_each_release_have_specs() -> None:
    """The numbers of gates that kube-scheduler registers.

    Source: pkg/features/kube_features.go, defaultVersionedKubernetesFeatureGates (1.36, 1.37).
    """
    assert {version: len(specs) for version, specs in FEATURE_SPECS.items()} == {"1.36": 241, "1.37": 253}


@pytest.mark.parametrize(
    ("gate", "spec_1_36", "spec_1_37"),
    [
        ("GenericWorkload", FeatureSpec("ALPHA", False, False), FeatureSpec("BETA", False, False)),
        ("StorageCapacityScoring", FeatureSpec("ALPHA", False, False), FeatureSpec("BETA", True, False)),
        ("DRADeviceTaintRules", FeatureSpec("BETA", False, False), FeatureSpec("", True, False)),
        ("DRAExtendedResource", FeatureSpec("BETA", True, False), FeatureSpec("", True, True)),
        ("GangScheduling", FeatureSpec("ALPHA", False, False), None),
        ("CompositePodGroup", None, FeatureSpec("ALPHA", False, False)),
    ],
)
def test_the_stage_of_a_gate_depends_on_the_release(
    gate: str, spec_1_36: FeatureSpec | None, spec_1_37: FeatureSpec | None
) -> None:
    """Source: pkg/features/kube_features.go, defaultVersionedKubernetesFeatureGates (1.36, 1.37)."""
    assert (FEATURE_SPECS["1.36"].get(gate), FEATURE_SPECS["1.37"].get(gate)) == (spec_1_36, spec_1_37)


@pytest.mark.parametrize(
    ("values", "gates"),
    [
        ((), {}),
        (("WatchList=false",), {"WatchList": False}),
        (("kube:WatchList=0, AllAlpha=T",), {"WatchList": False, "AllAlpha": True}),
        (("WatchList=true", "WatchList=false"), {"WatchList": False}),
        (("SchedulerQueueingHints=true",), {"SchedulerQueueingHints": True}),
        (("GenericWorkload=true,GangScheduling=true",), {"GenericWorkload": True, "GangScheduling": True}),
    ],
    ids=[
        "no gates", "a gate without effect here", "with the component prefix", "the last value applies",
        "a locked gate with its default", "with its dependency",
    ],
)  # fmt: skip
def test_gates_are_parsed(values: tuple[str, ...], gates: dict[str, bool]) -> None:
    assert parse_feature_gates(values, RELEASE_1_36) == gates


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("Nope=true", "unrecognized feature gate: Nope"),
        ("WatchLst=true", 'unrecognized feature gate: WatchLst; did you mean "WatchList"?'),
        ("WatchList", "missing bool value for WatchList; write WatchList=true or WatchList=false"),
        ("WatchList=yes", "invalid value of WatchList=yes: want true or false"),
        ("wardle:A=true", "component not registered: wardle; want kube:A=true or A=true"),
        (
            "SchedulerQueueingHints=false",
            "cannot set feature gate SchedulerQueueingHints to false, feature is locked to true",
        ),
        (
            "GangScheduling=true",
            "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
        ),
        (
            "PodLevelResources=false",
            "InPlacePodLevelResourcesVerticalScaling is enabled, but depends on features that are disabled: "
            "[PodLevelResources]",
        ),
    ],
)
def test_an_invalid_gate_is_reported_in_one_line(value: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_feature_gates([value], RELEASE_1_36)
    assert list(map(str, caught.value.errors)) == [f"--feature-gates: {message}"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("GangScheduling=true", "unrecognized feature gate: GangScheduling; it exists in 1.36"),
        ("SidecarContainers=true", "unrecognized feature gate: SidecarContainers; it exists in 1.36"),
        (
            "DRADeviceTaints=false",
            "DRADeviceTaintRules is enabled, but depends on features that are disabled: [DRADeviceTaints]",
        ),
        (
            "TopologyAwareWorkloadScheduling=true",
            "TopologyAwareWorkloadScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
        ),
        (
            "CompositePodGroup=true,GenericWorkload=true",
            "CompositePodGroup is enabled, but depends on features that are disabled: "
            "[TopologyAwareWorkloadScheduling]",
        ),
        (
            "NodeDeclaredFeatures=false",
            "cannot set feature gate NodeDeclaredFeatures to false, feature is locked to true",
        ),
    ],
)
def test_the_gates_of_another_release_are_invalid(value: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_feature_gates([value], RELEASE_1_37)
    assert list(map(str, caught.value.errors)) == [f"--feature-gates: {message}"]


def test_all_beta_applies_to_gates_that_are_not_set_themselves() -> None:
    gates = select_scheduling_features(
        parse_feature_gates(["AllBeta=false,SchedulerPopFromBackoffQ=true"], RELEASE_1_36), RELEASE_1_36
    )
    assert "SchedulerPopFromBackoffQ" in gates
    assert "NodeDeclaredFeatures" not in gates
    assert "DRAPrioritizedList" in gates


def test_gates_are_listed_with_their_stage() -> None:
    enabled = get_values_by_gate_and_stage({"WatchList": False}, RELEASE_1_36)
    assert enabled["WatchList", "BETA"] is False
    assert enabled["SchedulerQueueingHints", ""] is True
    assert enabled["GangScheduling", "ALPHA"] is False
