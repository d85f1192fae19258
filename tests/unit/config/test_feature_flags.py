"""`--feature-gates` is read as kube-scheduler reads it."""

import pytest

from extender.config.faults import ConfigError
from extender.config.feature_flags import in_force, parse, scheduling_gates
from extender.config.gates import DEFAULTS
from extender.config.known_gates import KNOWN_GATES


def test_every_gate_we_have_is_known_with_the_same_default() -> None:
    assert {name: KNOWN_GATES[name].default for name in DEFAULTS} == dict(DEFAULTS)
    assert len(KNOWN_GATES) == 241


@pytest.mark.parametrize(
    ("values", "read"),
    [
        ((), {}),
        (("WatchList=false",), {"WatchList": False}),
        (("kube:WatchList=0, AllAlpha=T",), {"WatchList": False, "AllAlpha": True}),
        (("WatchList=true", "WatchList=false"), {"WatchList": False}),
        (("SchedulerQueueingHints=true",), {"SchedulerQueueingHints": True}),
        (("GenericWorkload=true,GangScheduling=true",), {"GenericWorkload": True, "GangScheduling": True}),
    ],
    ids=[
        "nothing", "a gate of another component", "with the component's name", "the last holds",
        "a locked gate may be set to what it is", "with what it depends on",
    ],
)  # fmt: skip
def test_gates_are_read(values: tuple[str, ...], read: dict[str, bool]) -> None:
    assert parse(values) == read


@pytest.mark.parametrize(
    ("value", "told"),
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
def test_a_wrong_gate_is_told_in_one_line(value: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse([value])
    assert list(map(str, caught.value.faults)) == [f"--feature-gates: {told}"]


def test_a_stage_may_be_switched_as_a_whole_but_for_gates_that_are_set_themselves() -> None:
    gates = scheduling_gates(parse(["AllBeta=false,SchedulerPopFromBackoffQ=true"]))
    assert "SchedulerPopFromBackoffQ" in gates
    assert "NodeDeclaredFeatures" not in gates
    assert "DRAPrioritizedList" in gates


def test_gates_are_told_with_their_stage() -> None:
    told = in_force({"WatchList": False})
    assert told["WatchList", "BETA"] is False
    assert told["SchedulerQueueingHints", ""] is True
    assert told["GangScheduling", "ALPHA"] is False
