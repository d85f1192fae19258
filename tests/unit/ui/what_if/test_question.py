"""Questions of the page What if: their scenario, their errors, and their command line."""

import pytest

from extender.planning.scenario import AddedNodes, Scale, Scenario, ScenarioError
from extender.ui.what_if.question import (
    Question,
    format_command,
    list_workloads,
    make_configuration,
    make_scenario,
    read_question,
)

ALL = Question(
    drain="n1, n2\nn3",
    remove="n4",
    lose="zone=a disk=",
    add="2",
    like="n5",
    workload="Deployment/shop/web",
    replicas="30",
    preempt="on",
)


def test_the_fields_become_a_scenario() -> None:
    assert make_scenario(ALL) == Scenario(
        add=(AddedNodes(2, "n5"),),
        remove=("n4",),
        lose=(("zone", "a"), ("disk", "")),
        drain=("n1", "n2", "n3"),
        scale=(Scale("deployment", "shop", "web", 30),),
        preempt=True,
    )


def test_the_fields_become_a_command_line() -> None:
    assert format_command(ALL, "-f 'my cluster.json'") == (
        "extender what-if -f 'my cluster.json' --drain n1 --drain n2 --drain n3 --remove n4 --lose zone=a --lose disk="
        " --add 2 --like n5 --scale deployment/web=30 --namespace shop --preempt"
    )
    assert format_command(Question(strategy="own", config="kind: x"), "") == "extender what-if --config scheduler.yaml"
    assert format_command(Question(drain="a;rm"), "") == "extender what-if --drain 'a;rm'"


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"lose": "zone"}, "Lose all nodes with the label: 'zone'; want KEY=VALUE"),
        ({"lose": "=a"}, "Lose all nodes with the label: '=a'; want KEY=VALUE"),
        ({"add": "0", "like": "n"}, "Add nodes: '0'; want a number from 1 to 200"),
        ({"add": "\u0663", "like": "n"}, "want a number from 1 to 200"),
        ({"add": "1"}, "Add nodes: name the node that the new nodes are like"),
        ({"like": "n"}, "Add nodes: ''; want a number from 1 to 200"),
        ({"workload": "web", "replicas": "1"}, "Scale: 'web'; want KIND/NAMESPACE/NAME"),
        ({"workload": "daemonset/a/b", "replicas": "1"}, "want KIND/NAMESPACE/NAME with a kind of deployment"),
        ({"workload": "job/a/b/c", "replicas": "1"}, "want KIND/NAMESPACE/NAME"),
        ({"workload": "job/a/b"}, "Scale: ''; want a number from 0 to 10000"),
        ({"replicas": "3"}, "Scale: ''; want KIND/NAMESPACE/NAME"),
        ({"drain": "n " * 201}, "Drain nodes: has 201 entries; at most 200"),
        ({"strategy": "other"}, "Configuration: 'other' is unknown"),
        ({"config": "kind: x"}, 'Configuration: choose "the configuration below" to schedule with the entered one'),
        ({"strategy": "own"}, "Configuration: enter a KubeSchedulerConfiguration"),
        ({"strategy": "own", "config": "x" * 20_001}, "Configuration: has 20001 characters; at most 20000"),
    ],
)
def test_an_invalid_field_is_named_with_what_is_wanted(fields: dict[str, str], error: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        make_scenario(Question(**fields))
    assert error in str(raised.value)
    assert len(raised.value.errors) == 1


def test_the_address_has_the_fields_that_are_not_empty() -> None:
    question = read_question({"drain": " n1 ", "like": "", "unknown": "x", "preempt": "on"})
    assert question == Question(drain="n1", preempt="on")
    assert question.format_query() == "drain=n1&preempt=on"
    assert not question.is_empty
    assert not read_question({"config": "kind: x"}).is_empty  # the error says that it is not chosen


def test_a_strategy_becomes_a_configuration_of_all_profiles() -> None:
    text = make_configuration(Question(strategy="MostAllocated"), ["default-scheduler", 'a: "b"'])
    assert text.splitlines()[2:5] == [
        "profiles:",
        '- schedulerName: "default-scheduler"',
        "  pluginConfig:",
    ]
    assert '- schedulerName: "a: \\"b\\""' in text
    assert text.count("type: MostAllocated") == 2
    assert make_configuration(Question(strategy="own", config="kind: x"), ["a"]) == "kind: x"
    assert make_configuration(Question(drain="n"), ["a"]) == ""


def test_workloads_are_named_as_the_form_wants_them() -> None:
    owners = [
        ("ReplicaSet", "shop", "web-5d8c"),
        ("ReplicaSet", "shop", "web-7f4b"),
        ("ReplicaSet", "shop", "alone"),
        ("StatefulSet", "ml", "trainer"),
        ("DaemonSet", "kube-system", "proxy"),
    ]
    deployments = {"shop/web-5d8c": "web", "shop/web-7f4b": "web"}
    expected = ["deployment/shop/web", "replicaset/shop/alone", "statefulset/ml/trainer"]
    assert list_workloads(owners, deployments, 9) == expected
    assert list_workloads(owners, deployments, 1) == ["deployment/shop/web"]
