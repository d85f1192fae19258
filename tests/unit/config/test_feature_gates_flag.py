"""Parsing and validation of the flag `--feature-gates`."""

import pytest

from extender.config.errors import ConfigError
from extender.config.feature_gate_specs import FEATURE_SPECS
from extender.config.feature_gates import SCHEDULING_GATE_DEFAULTS
from extender.config.feature_gates_flag import list_gates_by_stage, parse_feature_gates, select_scheduling_gates


def test_every_scheduling_gate_has_a_spec_with_the_same_default() -> None:
    assert {name: FEATURE_SPECS[name].default for name in SCHEDULING_GATE_DEFAULTS} == dict(SCHEDULING_GATE_DEFAULTS)
    assert len(FEATURE_SPECS) == 241


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
    assert parse_feature_gates(values) == gates


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
        parse_feature_gates([value])
    assert list(map(str, caught.value.errors)) == [f"--feature-gates: {message}"]


def test_all_beta_applies_to_gates_that_are_not_set_themselves() -> None:
    gates = select_scheduling_gates(parse_feature_gates(["AllBeta=false,SchedulerPopFromBackoffQ=true"]))
    assert "SchedulerPopFromBackoffQ" in gates
    assert "NodeDeclaredFeatures" not in gates
    assert "DRAPrioritizedList" in gates


def test_gates_are_listed_with_their_stage() -> None:
    enabled = list_gates_by_stage({"WatchList": False})
    assert enabled["WatchList", "BETA"] is False
    assert enabled["SchedulerQueueingHints", ""] is True
    assert enabled["GangScheduling", "ALPHA"] is False
