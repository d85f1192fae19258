"""The API for notebooks gives the answers of the commands, and leaves the cluster as it was."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from extender.notebook import ConfigError, InputError, read_cluster
from extender.plugin import NodeInfo, PluginArgs, Pod, per_node_plugin

DEMO = str(Path(__file__).parents[2] / "docs" / "examples" / "demo" / "cluster.yaml")


class SmallArgs(msgspec.Struct, frozen=True, rename="camel"):
    max_cpu: int = 2000


@per_node_plugin("SmallNodes", options=SmallArgs)
class SmallNodes:
    """A plugin of a notebook: no package has it."""

    def __init__(self, args: PluginArgs[SmallArgs]) -> None:
        self.max_cpu = args.options.max_cpu

    def filter(self, _pod: Pod, node: NodeInfo) -> str | None:
        return "node(s) are too large" if node.allocatable("cpu") > self.max_cpu else None


def make_config(plugin: str, **args: int) -> dict[str, Any]:
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": plugin}]}},
        "pluginConfig": [{"name": plugin, "args": args}],
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }


def test_a_pod_is_explained() -> None:
    answer = read_cluster(DEMO).explain("shop/frontend-5d8c-k7wzd")
    assert [answer["schemaVersion"], answer["kind"], list(answer["pods"])] == [
        "1.0",
        "Explanation",
        ["shop/frontend-5d8c-k7wzd"],
    ]
    message = answer["pods"]["shop/frontend-5d8c-k7wzd"]["message"]
    assert message.startswith("0/12 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu,")


def test_all_pending_pods_are_explained() -> None:
    assert len(read_cluster(DEMO).explain()["pods"]) == 8


def test_a_simulation_leaves_the_cluster_as_it_was() -> None:
    cluster = read_cluster(DEMO)
    answers = [cluster.simulate(seed=1), cluster.simulate(seed=1)]
    assert answers[0] == answers[1]
    assert answers[0]["kind"] == "Simulation"
    placed = {placement["pod"]: placement["node"] for placement in answers[0]["placements"] if placement["node"]}
    assert placed == {"shop/api-7f4b-g3ypl": "general-a3", "ml/trainer-2": "gpu-b1"}


def test_a_configuration_is_used_and_a_wrong_pod_is_named(tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {filter: {disabled: [{name: '*'}]}}}]\n"
    )
    cluster = read_cluster(DEMO, config=str(config))
    assert len(cluster.explain("batch/month-end")["pods"]["batch/month-end"]["feasible"]) == 12
    with pytest.raises(InputError) as caught:
        cluster.explain("shop/nobody")
    assert str(caught.value).endswith("Pod shop/nobody: there is no such pod")


def test_files_may_be_paths(tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    assert len(read_cluster(Path(DEMO), config=config).explain()["pods"]) == 8


def test_a_cluster_without_files_is_an_error_and_not_empty() -> None:
    with pytest.raises(InputError) as caught:
        read_cluster()
    assert str(caught.value) == "read_cluster: names no file; extender record -o cluster.json.gz writes one"


def test_a_plugin_of_the_notebook_decides_if_the_configuration_enables_it() -> None:
    pod = "shop/api-7f4b-g3ypl"
    wide, narrow = (
        read_cluster(DEMO, config=make_config("SmallNodes", maxCpu=max_cpu), plugins=[SmallNodes])
        for max_cpu in (4000, 3000)
    )
    assert len(wide.explain(pod)["pods"][pod]["feasible"]) == 6
    assert "6 node(s) are too large" in narrow.explain(pod)["pods"][pod]["message"]
    placements = {placement["pod"]: placement["node"] for placement in narrow.simulate()["placements"]}
    assert placements[pod] is None


def test_a_plugin_of_the_notebook_may_be_enabled_by_a_file(tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_bytes(msgspec.json.encode(make_config("SmallNodes", maxCpu=3000)))
    cluster = read_cluster(DEMO, config=config, plugins=[SmallNodes])
    pod = "shop/api-7f4b-g3ypl"
    assert "6 node(s) are too large" in cluster.explain(pod)["pods"][pod]["message"]


def test_a_plugin_without_effect_has_a_note_and_an_invalid_one_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    read_cluster(DEMO, plugins=[SmallNodes])
    note = 'note: plugin "SmallNodes" has no effect: the configuration does not enable it'
    assert note in capsys.readouterr().err
    with pytest.raises(ConfigError, match="got the plain function"):
        read_cluster(DEMO, plugins=[make_config])
    with pytest.raises(InputError) as caught:
        read_cluster(DEMO, config=make_config("SmallNode"), plugins=[SmallNodes])
    assert 'config: profiles[0].plugins.multiPoint.enabled: PreFilterPlugin "SmallNode" does not exist' in str(
        caught.value
    )


def test_a_list_of_pods_and_a_single_plugin_are_errors_that_name_the_fix() -> None:
    pods: Any = ["shop/api-7f4b-g3ypl"]
    with pytest.raises(TypeError, match=r"a pod is list, want text: write .* explain\(\*names\)"):
        read_cluster(DEMO).explain(pods)
    plugin: Any = SmallNodes
    with pytest.raises(TypeError, match=r"want a list: write plugins=\[\.\.\.\]"):
        read_cluster(DEMO, plugins=plugin)


@pytest.mark.parametrize("seed", ["a", None, 1.5, True], ids=repr)
def test_a_seed_that_is_no_whole_number_is_an_error(seed: Any) -> None:
    with pytest.raises(TypeError, match=f"seed is {type(seed).__name__}, want a whole number: write seed=7"):
        read_cluster(DEMO).simulate(seed=seed)


def test_a_text_does_not_enable_evictions() -> None:
    wrong_value: Any = "no"
    with pytest.raises(TypeError, match="preempt is str, want True or False"):
        read_cluster(DEMO).simulate(preempt=wrong_value)


def test_a_seed_may_be_a_numpy_integer() -> None:
    cluster = read_cluster(DEMO)
    assert cluster.simulate(seed=np.arange(8)[7]) == cluster.simulate(seed=7)


def test_a_notebook_shows_the_files_and_the_size_of_a_cluster(tmp_path: Path) -> None:
    assert repr(read_cluster(DEMO)) == f"<RecordedCluster {DEMO}: 12 nodes, 35 pods>"
    node = tmp_path / "node.yaml"
    node.write_text("{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 4}}}")
    assert repr(read_cluster(node)) == f"<RecordedCluster {node}: 1 node, 0 pods>"
