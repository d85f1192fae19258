"""The output of each command as text, JSON and YAML, and the choice of the configuration."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

DEMO = Path(__file__).parents[3] / "docs" / "examples" / "demo" / "cluster.yaml"
Command = Callable[..., tuple[int, str, str]]

CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 2, memory: 4Gi, pods: 10}}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: a, resources: {requests: {cpu: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: big}
spec: {containers: [{name: a, resources: {requests: {cpu: 3}}}]}
"""
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
ONLY_NAME = HEAD + (
    "profiles:\n- schedulerName: default-scheduler\n  plugins:\n    multiPoint:\n      disabled: [{name: '*'}]\n"
    "      enabled: [{name: PrioritySort}, {name: DefaultBinder}]\n"
)


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    path = tmp_path / "c.yaml"
    path.write_text(CLUSTER)
    return str(path)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "scheduler.yaml"


def test_explain_prints_a_text_for_each_pending_pod(extender: Command, cluster: str) -> None:
    status, out, err = extender("explain", "-f", cluster)
    assert (status, err) == (0, "")
    assert out.startswith("Pod default/web\n  fits on 1 of 1 node\n")
    assert (
        "\n\nPod default/big\n  fits on none of 1 node: 1 node has too little cpu\n"
        "  0/1 nodes are available: 1 Insufficient cpu."
    ) in out
    assert "    n1: Insufficient cpu: wants 3, but only 2 are free (1 short); even the empty node has only 2\n" in out


def test_explain_prints_the_same_values_as_json_and_as_yaml(extender: Command, cluster: str) -> None:
    as_json = json.loads(extender("explain", "-f", cluster, "web", "-o", "json")[1])
    as_yaml = yaml.safe_load(extender("explain", "-f", cluster, "default/web", "-o", "yaml")[1])
    assert list(as_json["pods"]) == ["default/web"]
    assert as_json["pods"]["default/web"]["best"] == ["n1"]
    assert as_json == as_yaml


def test_explain_shows_all_results_of_one_node(extender: Command) -> None:
    arguments = ("explain", "-f", str(DEMO), "shop/frontend-5d8c-k7wzd")
    status, out, err = extender(*arguments, "--node", "gpu-a1", "--node", "general-c1")
    assert (status, err) == (0, "")
    assert out.splitlines()[3:] == [
        "",
        "  Node gpu-a1 is rejected by TaintToleration",
        "    TaintToleration: node(s) had untolerated taint(s): tolerate nvidia.com/gpu=present:NoSchedule, or remove "
        "it from the node",
        "    PodTopologySpread: node(s) didn't match pod topology spread constraints: maxSkew 1 over "
        "topology.kubernetes.io/zone would be exceeded in eu-1a",
        "",
        "  Node general-c1 is rejected by NodeResourcesFit",
        "    NodeResourcesFit: Insufficient cpu: wants 500m, but only 400m are free (100m short)",
    ]
    values = json.loads(extender(*arguments, "--node", "gpu-a1", "-o", "json")[1])
    assert list(values["pods"]["shop/frontend-5d8c-k7wzd"]["nodes"]) == ["gpu-a1"]
    assert extender(*arguments, "--node", "gpu-c9")[0] == 2
    assert extender(*arguments, "--node", "gpu-a9")[2] == (
        'extender: --node: there is no node gpu-a9; did you mean "gpu-a1"?\n'
    )


def test_explain_prints_one_line_for_each_pod(extender: Command) -> None:
    status, out, err = extender("explain", "-f", str(DEMO), "--brief")
    assert (status, err) == (0, "")
    assert len(out.splitlines()) == 8
    assert out.splitlines()[-2:] == [
        "ingress/gateway-canary: fits on none of 12 nodes: 5 nodes do not match its node selector or affinity, 3 nodes "
        "have its host port in use, 3 nodes have taints that it does not tolerate, 1 node is cordoned",
        "batch/import: is not enqueued, because of SchedulingGates: waiting for scheduling gates: [example.com/quota]",
    ]
    names = ("shop/api-7f4b-c6jd2", "shop/api-7f4b-g3ypl")
    assert extender("explain", "-f", str(DEMO), "--brief", *names)[1].splitlines() == [
        "shop/api-7f4b-c6jd2 is on node general-a1: general-a1 ranks 2 of 6 now (total 832, 7 behind general-a3); it "
        "would go to general-a3",
        "shop/api-7f4b-g3ypl: fits on 6 of 12 nodes, best on general-a3",
    ]
    assert extender("explain", "-f", str(DEMO), "--brief", "-o", "json")[0] == 2


def test_a_type_and_a_name_are_two_arguments_as_in_kubectl(extender: Command) -> None:
    _, out, _ = extender("explain", "-f", str(DEMO), "--brief", "deploy", "frontend")
    assert out.startswith("shop/frontend-5d8c-k7wzd: fits on none of 12 nodes")


def test_explain_without_pending_pods_prints_one_line(extender: Command) -> None:
    node = CLUSTER.partition("---")[0]
    assert extender("explain", "-f", "-", stdin=node) == (
        0,
        "",
        'extender: no pod is pending for scheduler "default-scheduler"\n',
    )


def test_explain_without_pending_pods_names_the_namespace_and_the_labels(extender: Command, cluster: str) -> None:
    _, _, err = extender("explain", "-f", cluster, "-n", "shoop", "-l", "app=web")
    assert err == (
        'extender: no pod is pending in namespace "shoop" with the labels "app=web" for scheduler "default-scheduler"'
        "; -A selects all namespaces, with 2 pending pods\n"
    )


def test_explain_without_pending_pods_suggests_a_namespace_or_all_of_them(extender: Command) -> None:
    for namespace, advice in (
        ("shoop", '; did you mean "shop"?'),
        ("kube-system", "; -A selects all namespaces, with 8 pending pods"),
        ("elsewhere", "; -A selects all namespaces, with 8 pending pods"),
    ):
        _, out, err = extender("explain", "-f", str(DEMO), "-n", namespace)
        want = f'extender: no pod is pending in namespace "{namespace}" for scheduler "default-scheduler"{advice}\n'
        assert (out, err) == ("", want)


def test_explain_of_a_namespace_counts_only_its_pods_of_other_schedulers(extender: Command, cluster: str) -> None:
    other = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: ml, labels: {app: train}}\n"
    other += "spec: {schedulerName: batch, containers: [{name: a}]}\n"
    pending = 'extender: 1 pod is pending for scheduler "batch"; pass its configuration with --config\n'
    others = "; -A selects all namespaces, with 2 pending pods"
    for flags, expected in (("-n", "ml"), f"{others}\n{pending}"), (("-l", "app=train"), f"\n{pending}"):
        _, _, err = extender("explain", "-f", cluster, "-f", "-", *flags, stdin=other)
        assert err.endswith(f'"default-scheduler"{expected}')
    assert extender("explain", "-f", cluster, "-f", "-", "-n", "default", stdin=other)[2] == ""


@pytest.mark.parametrize("command", ["explain", "simulate"])
def test_pending_pods_of_other_schedulers_are_counted(extender: Command, command: str) -> None:
    others = "".join(
        f"---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\n"
        f"spec: {{schedulerName: {scheduler}, containers: [{{name: a}}]}}\n"
        for name, scheduler in (("a", "extender"), ("b", "extender"), ("c", "another"))
    )
    status, _, err = extender(command, "-f", "-", stdin=CLUSTER + others)
    assert (status, err) == (
        0,
        'extender: 1 pod is pending for scheduler "another"; pass its configuration with --config\n'
        'extender: 2 pods are pending for scheduler "extender"; pass its configuration with --config\n',
    )


TWO_PROFILES = HEAD + "profiles: [{schedulerName: default-scheduler}, {schedulerName: batch}]\n"
BATCH = (
    "---\napiVersion: v1\nkind: Pod\nmetadata: {name: job}\n"
    "spec: {schedulerName: batch, priority: 9, containers: [{name: a, resources: {requests: {cpu: 1500m}}}]}\n"
    "status: {nominatedNodeName: n1}\n"
)


def test_explain_covers_the_pods_of_all_profiles_and_respects_their_nominations(
    extender: Command, config: Path
) -> None:
    config.write_text(TWO_PROFILES)
    status, out, err = extender("explain", "-f", "-", "--config", str(config), "-o", "json", stdin=CLUSTER + BATCH)
    assert (status, err) == (0, "")
    best = {pod: report["best"] for pod, report in json.loads(out)["pods"].items()}
    assert best == {"default/web": [], "default/big": [], "default/job": ["n1"]}


def test_only_the_first_profile_of_a_recorded_configuration_applies(extender: Command, cluster: str) -> None:
    status, out, err = extender("explain", "-f", cluster, "-f", "-", "-o", "json", stdin=TWO_PROFILES + BATCH)
    assert (status, err) == (
        0,
        'extender: 1 pod is pending for scheduler "batch"; pass its configuration with --config\n',
    )
    best = {pod: report["best"] for pod, report in json.loads(out)["pods"].items()}
    assert best == {"default/web": ["n1"], "default/big": []}


def test_explain_of_an_unknown_pod_suggests_the_nearest_name(extender: Command, cluster: str) -> None:
    assert extender("explain", "-f", cluster, "wep") == (
        2,
        "",
        f"extender: {cluster}: Pod wep: there is no such pod; did you mean default/web?\n",
    )


def test_the_flag_config_overrides_the_recorded_configuration(extender: Command, cluster: str, config: Path) -> None:
    config.write_text(HEAD)
    _, out, _ = extender("explain", "-f", cluster, "-f", "-", "--config", str(config), "-o", "json", stdin=ONLY_NAME)
    assert json.loads(out)["pods"]["default/big"]["best"] == []


def test_the_recorded_configuration_applies_without_the_flag_config(extender: Command, cluster: str) -> None:
    _, out, _ = extender("explain", "-f", cluster, "-f", "-", "big", "-o", "json", stdin=ONLY_NAME)
    assert json.loads(out)["pods"]["default/big"]["best"] == ["n1"]


def test_simulate_prints_a_report(extender: Command, cluster: str) -> None:
    status, out, err = extender("simulate", "-f", cluster, "--seed", "4")
    assert (status, err) == (0, "")
    assert out.startswith(
        "2 pods waiting, 1 placed, 1 not placed (seed 4)\n\nNot placed\n  1  Insufficient cpu\n     default/big\n"
    )


def test_simulate_prints_the_same_values_as_json_and_as_yaml(extender: Command, cluster: str) -> None:
    as_json = json.loads(extender("simulate", "-f", cluster, "-o", "json")[1])
    as_yaml = yaml.safe_load(extender("simulate", "-f", cluster, "-o", "yaml")[1])
    assert as_json["placements"][0] == {
        "pod": "default/web",
        "node": "n1",
        "message": None,
        "reasons": [],
        "reasonCodes": [],
        "preemption": None,
    }
    assert as_json["evicted"] == []
    assert as_json["notRecorded"] == []
    assert as_json == as_yaml


def test_a_valid_configuration_passes_the_check(extender: Command, config: Path) -> None:
    config.write_text(ONLY_NAME)
    assert extender("config", "check", str(config)) == (0, f"{config}: fine; decides for default-scheduler\n", "")


def test_the_check_names_the_plugins_that_kube_scheduler_does_not_have(extender: Command, config: Path) -> None:
    """kube-scheduler exits with an error if its configuration names one of them."""
    config.write_text(
        HEAD + "profiles:\n- plugins:\n    multiPoint: {enabled: [{name: Coscheduling}]}\n"
        "    score: {enabled: [{name: NodeResourcesLeastAllocated}]}\n"
    )
    note = "extender: note: kube-scheduler 1.37 does not have Coscheduling, NodeResourcesLeastAllocated\n"
    assert extender("config", "check", str(config))[::2] == (0, note)


def test_the_check_prints_no_escape_sequences(extender: Command, config: Path) -> None:
    config.write_text(HEAD + 'profiles: [{schedulerName: "\\e[31mred"}]\n')
    assert extender("config", "check", str(config)) == (0, f"{config}: fine; decides for \\x1b[31mred\n", "")


def test_the_check_names_what_kube_scheduler_no_longer_calls(extender: Command, config: Path) -> None:
    config.write_text(
        HEAD + "percentageOfNodesToScore: 100\n"
        "extenders: [{urlPrefix: 'http://x:1', filterVerb: filter, nodeCacheCapable: true}]\n"
    )
    status, out, err = extender("config", "check", "--filter-answer", "best", str(config))
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == f"{config}: fine; decides for default-scheduler"
    assert out.splitlines()[1].startswith("kube-scheduler calls no Score plugin for pods of default-scheduler: ")
    assert "NodeResourcesFit, " in out.splitlines()[1]


def test_the_check_rejects_a_configuration_that_contradicts_an_answer_of_one_node(
    extender: Command, config: Path
) -> None:
    config.write_text(HEAD)
    line = f"extender: {config}: extenders: none has filterVerb; want one that calls filter\n"
    assert extender("config", "check", "--filter-answer", "best", str(config)) == (2, "", line)
    line = "extender: --extender: has no effect without --filter-answer best\n"
    assert extender("config", "check", "--extender", "http://x:1", str(config)) == (2, "", line)


def test_every_error_of_a_configuration_is_one_line_with_its_path(extender: Command, config: Path) -> None:
    config.write_text(
        HEAD + "paralelism: 3\nprofiles:\n- schedulerName: a\n  plugins: {filter: {enabled: [{name: NodeAfinity}]}}\n"
    )
    assert extender("config", "check", str(config)) == (
        2,
        "",
        f'extender: {config}: paralelism: unknown field "paralelism"; did you mean "parallelism"?\n'
        f'extender: {config}: profiles[0].plugins.filter.enabled: FilterPlugin "NodeAfinity" does not exist; '
        'did you mean "NodeAffinity"?\n',
    )
    config.write_text(config.read_text().replace("paralelism: 3\n", ""))
    assert extender("config", "check", str(config)) == (
        2,
        "",
        f"extender: {config}: profiles[0].plugins.filter.enabled: "
        'FilterPlugin "NodeAfinity" does not exist; did you mean "NodeAffinity"?\n',
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "stdin: is empty, or another option has read it; want YAML or JSON"),
        ("a: [", "stdin: line 1, column 5: expected the node content, but found '<stream end>'"),
        ('{"a": 1,\n "b" 2}', "stdin: line 2, column 6: Expecting ':' delimiter"),
        ("[" * 200_000, "stdin: line 1, column 101: nested too deeply; want at most 100 levels"),
    ],
    ids=["empty", "broken YAML", "broken JSON", "200,000 nested arrays"],
)
def test_an_unreadable_configuration_is_one_line(extender: Command, text: str, line: str) -> None:
    assert extender("config", "check", "-", stdin=text) == (2, "", f"extender: {line}\n")


def test_a_certificate_of_an_extender_that_is_no_pem_is_an_error(extender: Command, config: Path) -> None:
    config.write_text(HEAD + "extenders: [{urlPrefix: https://x, filterVerb: filter, tlsConfig: {caData: aGVsbG8=}}]\n")
    status, out, err = extender("config", "check", str(config))
    assert (status, out) == (2, "")
    assert err.startswith(f"extender: {config}: extenders[0].tlsConfig: ")


def test_the_files_of_certificates_are_not_read(extender: Command, config: Path) -> None:
    """They may exist only on the scheduler's machine."""
    tls = "{caFile: /no-ca, certFile: /no-certificate, keyFile: /no-key}"
    config.write_text(HEAD + f"extenders: [{{urlPrefix: https://x, filterVerb: filter, tlsConfig: {tls}}}]\n")
    assert extender("config", "check", str(config)) == (0, f"{config}: fine; decides for default-scheduler\n", "")
    config.write_text(config.read_text().replace("caFile: /no-ca", "caData: aGVsbG8="))
    status, _, err = extender("config", "check", str(config))
    assert (status, err.count("extenders[0].tlsConfig: ")) == (2, 1)


def test_a_missing_configuration_is_one_line(extender: Command, cluster: str, config: Path) -> None:
    line = f"extender: {config}: no such file; check the path, or write - to read standard input\n"
    assert extender("config", "check", str(config)) == (2, "", line)
    assert extender("simulate", "-f", cluster, "--config", str(config)) == (2, "", line)


def test_an_error_of_a_recorded_configuration_has_its_file(extender: Command) -> None:
    recorded = CLUSTER + "---\n" + HEAD + "parallelism: x\n"
    assert extender("simulate", "-f", "-", stdin=recorded) == (
        2,
        "",
        'extender: stdin: line 16: parallelism: expected an integer, got the string "x"\n',
    )


def test_the_default_configuration_passes_the_check(extender: Command, config: Path) -> None:
    status, out, err = extender("config", "defaults")
    assert (status, err) == (0, "")
    assert "\nkind: KubeSchedulerConfiguration\n" in out
    config.write_text(out)
    assert extender("config", "check", "--show", str(config)) == (0, out, "")


def test_the_configuration_commands_emulate_a_release(extender: Command, tmp_path: Path) -> None:
    """Source: pkg/scheduler/apis/config/v1/defaults.go, SetDefaults_VolumeBindingArgs (1.36, 1.37)."""
    capacity_scores = "shape:\n      - score: 10\n        utilization: 0\n"
    assert capacity_scores in extender("config", "defaults", "--emulated-version", "1.37")[1]
    assert capacity_scores not in extender("config", "defaults", "--emulated-version", "1.36")[1]
    config = tmp_path / "scheduler.yaml"
    config.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    assert capacity_scores in extender("config", "check", "--show", "--emulated-version", "1.37", str(config))[1]
    assert capacity_scores not in extender("config", "check", "--show", "--emulated-version", "1.36", str(config))[1]
    line = "extender: --emulated-version: 1.30 cannot be emulated; want 1.36 or 1.37\n"
    assert extender("config", "defaults", "--emulated-version", "1.30") == (2, "", line)
