"""Pod groups on the commands that work on a recorded cluster."""

import json
from collections.abc import Callable

import pytest

Command = Callable[..., tuple[int, str, str]]

GANG = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 1, memory: 4Gi, pods: 10}}
---
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: ring, namespace: default}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
---
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {schedulingGroup: {podGroupName: ring}, containers: [{name: a, resources: {requests: {cpu: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: b}
spec: {schedulingGroup: {podGroupName: ring}, containers: [{name: a, resources: {requests: {cpu: 1}}}]}
"""
GATES = "GenericWorkload=true,GangScheduling=true"
RELEASE = ("--emulated-version", "1.36")


@pytest.mark.parametrize(("flags", "placed"), [((), 1), (("--feature-gates", GATES, *RELEASE), 0)], ids=["off", "on"])
def test_a_simulation_places_a_gang_as_a_whole_if_the_feature_gates_are_enabled(
    extender: Command, flags: tuple[str, ...], placed: int
) -> None:
    status, out, _ = extender("simulate", "-f", "-", "-o", "json", *flags, stdin=GANG)
    assert (status, json.loads(out)["pods"]["placed"]) == (0, placed)


def test_an_explanation_includes_the_pod_group(extender: Command) -> None:
    flags = ("--feature-gates", "GenericWorkload=true", "--feature-gates", "GangScheduling=true", *RELEASE)
    _, out, _ = extender("explain", "-f", "-", "-o", "json", *flags, stdin=GANG)
    assert json.loads(out)["pods"]["default/a"]["podGroup"]["message"] == "pod group is unschedulable"
    _, out, _ = extender("explain", "-f", "-", *flags, stdin=GANG)
    assert "member of pod group default/ring, scheduled together with 1 other pod\n    the pod is not placed\n" in out
    _, out, _ = extender("explain", "-f", "-", "--brief", *flags, stdin=GANG)
    assert out.splitlines()[0] == "default/a: fits on 1 of 1 node; its pod group waits"
    _, out, _ = extender("explain", "-f", "-", "-o", "json", stdin=GANG)
    assert json.loads(out)["pods"]["default/a"]["podGroup"] is None


@pytest.mark.parametrize("command", ["explain", "simulate"])
def test_pod_groups_without_the_feature_gates_have_a_note(extender: Command, command: str) -> None:
    note = "2 pods are members of pod groups, which have no effect here;"
    note += " pass --feature-gates {} if their scheduler has it\n"
    assert extender(command, "-f", "-", stdin=GANG)[2].endswith(note.format("GenericWorkload=true"))
    assert extender(command, "-f", "-", *RELEASE, stdin=GANG)[2].endswith(note.format(GATES))
    assert "no effect" not in extender(command, "-f", "-", *RELEASE, "--feature-gates", GATES, stdin=GANG)[2]


def test_the_one_line_report_of_a_member_names_the_node_to_which_it_goes_with_its_group(extender: Command) -> None:
    other_node = GANG.partition("---")[0].replace("n1", "n2")
    flags = ("--feature-gates", GATES, *RELEASE, "--brief")
    _, out, _ = extender("explain", "-f", "-", *flags, stdin=f"{other_node}---\n{GANG}")
    lines = out.splitlines()
    assert [f"default/{pod}: fits on 2 of 2 nodes; goes to {{}} with its pod group" for pod in "ab"] == [
        line.replace("n1", "{}").replace("n2", "{}") for line in lines
    ]
    assert {line.partition("goes to ")[2].split()[0] for line in lines} == {"n1", "n2"}


def test_an_explanation_in_1_37_says_how_many_members_fit(extender: Command) -> None:
    flags = ("--feature-gates", "GenericWorkload=true", "--emulated-version", "1.37")
    group = GANG.replace("v1alpha2", "v1beta1")
    _, out, _ = extender("explain", "-f", "-", "-o", "json", *flags, stdin=group)
    reason = "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
    assert json.loads(out)["pods"]["default/a"]["podGroup"]["message"] == (
        f"{reason}, pod group preemption: No preemption victims found for incoming preemptor"
    )


def test_an_explanation_in_1_37_names_the_member_that_holds_its_group(extender: Command) -> None:
    flags = ("--feature-gates", "GenericWorkload=true", "--emulated-version", "1.37")
    held = GANG.replace("v1alpha2", "v1beta1").replace(
        "metadata: {name: b}\nspec: {", "metadata: {name: b}\nspec: {schedulingGates: [{name: hold}], "
    )
    _, out, _ = extender("explain", "-f", "-", "-o", "json", *flags, stdin=held)
    message = json.loads(out)["pods"]["default/a"]["podGroup"]["message"]
    assert message.startswith("held by pod default/b, which SchedulingGates rejects: ")
