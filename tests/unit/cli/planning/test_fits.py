"""`extender fits`: output formats, several pods, and invalid input."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.planning.clusters import as_list, node, pod

Run = Callable[..., tuple[int, str, str]]


def write(path: Path, *objects: dict[str, object]) -> str:
    path.write_text(as_list(objects))
    return str(path)


def test_json_has_the_number_the_copies_by_node_and_the_reasons(extender: Run, tmp_path: Path) -> None:
    cluster = write(tmp_path / "c.json", node("n1", "3"), node("n2", "1"))
    web = write(tmp_path / "p.json", pod("web", owner=""))
    status, out, err = extender("fits", "-f", cluster, "-p", web, "-o", "json")
    answer = json.loads(out)
    assert (status, err) == (0, "")
    assert (answer["fits"], answer["placed"], answer["last"]) == (4, {"n1": 3, "n2": 1}, answer["last"])
    assert answer["stoppedBy"] == [
        {
            "reasons": ["Insufficient cpu"],
            "reasonCodes": ["InsufficientCPU"],
            "plugins": ["NodeResourcesFit"],
            "count": 2,
            "nodes": ["n1", "n2"],
        }
    ]


def test_several_pods_give_a_table_and_each_is_counted_alone(extender: Run, tmp_path: Path) -> None:
    cluster = write(tmp_path / "c.json", node("n1", "4"))
    pods = write(tmp_path / "p.json", pod("small", "1", owner=""), pod("large", "2", owner=""))
    status, out, _ = extender("fits", "-f", cluster, "-p", pods)
    assert (status, [line.split()[:3] for line in out.splitlines()]) == (
        0,
        [["POD", "FITS", "LAST"], ["default/small", "4", "n1"], ["default/large", "2", "n1"]],
    )
    answer = json.loads(extender("fits", "-f", cluster, "-p", pods, "-o", "json")[1])
    assert [shape["fits"] for shape in answer["shapes"]] == [4, 2]


def test_a_pod_of_the_cluster_is_copied_by_its_name_or_that_of_its_workload(extender: Run, tmp_path: Path) -> None:
    running = pod("web-a", "1", on="n1")
    cluster = write(tmp_path / "c.json", node("n1", "5"), running, pod("web-b"), pod("job", "2", owner=""))
    for names in (("default/web-b",), ("web-a", "-n", "default"), ("pod", "web-b")):
        assert extender("fits", "-f", cluster, *names)[1].startswith("4 more copies of default/web-")
    whole = extender("fits", "-f", cluster, "replicaset/web", "web-a")[1]
    assert whole.startswith("4 more copies of default/web-b fit.\nThe last copy is on n1.\n")
    file = write(tmp_path / "p.json", pod("small", "1", owner=""))
    answer = json.loads(extender("fits", "-f", cluster, "job", "-p", file, "-o", "json")[1])
    assert [(shape["pod"], shape["fits"]) for shape in answer["shapes"]] == [("default/job", 2), ("default/small", 4)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-p", "d/web"), "d/web: no such file; check the path, or leave out -p to name a pod of the cluster"),
        (("wbe",), "Pod wbe: there is no such pod; did you mean default/web?"),
        (("web", "-n", "shop"), 'Pod web: there is no such pod in namespace "shop"; did you mean default/web?'),
        ((), "no pod; want POD, a pod of the cluster, or a file in --pod FILE"),
    ],
    ids=["a pod in place of a file", "a misspelt pod", "a pod of another namespace", "no pod"],
)
def test_a_wrong_name_is_one_error_that_says_what_to_do(
    extender: Run, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    cluster = write(tmp_path / "c.json", node("n1", "5"), pod("web", owner=""))
    status, out, err = extender("fits", "-f", cluster, *arguments)
    assert (status, out) == (2, "")
    assert err.endswith(f"{message}\n")


def test_the_exit_code_says_whether_a_copy_fits(extender: Run, tmp_path: Path) -> None:
    cluster = write(tmp_path / "c.json", node("n1", "4"))
    small = write(tmp_path / "s.json", pod("small", "1", owner=""))
    large = write(tmp_path / "l.json", pod("large", "5", owner=""))
    assert extender("fits", "-f", cluster, "-p", small, "--exit-code")[0] == 0
    assert extender("fits", "-f", cluster, "-p", small, "-p", large, "--exit-code")[0] == 3
    assert extender("fits", "-f", cluster, "-p", large)[0] == 0


def test_pods_of_one_controller_are_one_shape_and_whole_workloads_are_counted(extender: Run, tmp_path: Path) -> None:
    cluster = write(tmp_path / "c.json", node("n1", "5"))
    pods = write(tmp_path / "p.json", pod("web-a"), pod("web-b"))
    answer = json.loads(extender("fits", "-f", cluster, "-p", pods, "-o", "json")[1])
    assert (answer["fits"], answer["replicas"], answer["workloads"]) == (5, 2, 2)
    assert extender("fits", "-f", cluster, "-p", pods)[1].startswith(
        "5 more copies of default/web-a fit.\nThat is 2 times all 2 pods of the workload.\n"
    )


def test_the_priority_of_a_class_of_the_cluster_is_used(extender: Run, tmp_path: Path) -> None:
    # A nominated pod of priority 5 keeps its space from pods of lower or equal priority.
    nominated = pod("first", "2", owner="", priority=5, status={"phase": "Pending", "nominatedNodeName": "n1"})
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    cluster = write(tmp_path / "c.json", node("n1", "3"), nominated, high)
    web = write(tmp_path / "p.json", pod("web", owner=""), pod("vip", owner="", priorityClassName="high"))
    answer = json.loads(extender("fits", "-f", cluster, "-p", web, "-o", "json")[1])
    assert [shape["fits"] for shape in answer["shapes"]] == [1, 3]


def test_the_priority_of_a_class_in_another_file_with_pods_is_used(extender: Run, tmp_path: Path) -> None:
    nominated = pod("first", "2", owner="", priority=5, status={"phase": "Pending", "nominatedNodeName": "n1"})
    low, high = (
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in (("low", 1), ("high", 9))
    )
    cluster = write(tmp_path / "c.json", node("n1", "3"), nominated, low)
    web = write(tmp_path / "web.json", pod("web", owner=""), high)
    vip_pod = pod("vip", owner="", priorityClassName="high")
    vip = write(tmp_path / "vip.json", {**vip_pod, "metadata": {"name": "vip"}})
    answer = json.loads(extender("fits", "-f", cluster, "-p", vip, "-p", web, "-o", "json")[1])
    assert [shape["fits"] for shape in answer["shapes"]] == [3, 1]


@pytest.mark.parametrize("arguments", ["-f c.json -p p.json", "-f c.json -f p.json -p c.json"])
def test_a_priority_class_that_the_cluster_does_not_have_is_an_error(
    extender: Run, tmp_path: Path, arguments: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    write(tmp_path / "c.json", node("n1", "3"), pod("web"), high)
    vip = pod("vip", owner="", priorityClassName="hihg")
    write(tmp_path / "p.json", {**vip, "metadata": {"name": "vip", "namespace": "default"}})
    status, out, error = extender("fits", *arguments.split())
    assert (status, out) == (2, "")
    assert "Pod default/vip: spec.priorityClassName: no PriorityClass with name hihg was found; did you" in error


def test_a_node_of_a_manifest_without_a_status_is_an_error(extender: Run, tmp_path: Path) -> None:
    cluster = write(tmp_path / "c.json", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    web = write(tmp_path / "p.json", pod("web", owner=""))
    assert extender("fits", "-f", cluster, "-p", web) == (
        2,
        "",
        f"extender: {cluster}: Node n1: status.allocatable: is missing; "
        "add it, such as {cpu: 4, memory: 8Gi, pods: 110}\n",
    )


def test_bad_input_is_one_line(extender: Run, tmp_path: Path) -> None:
    cluster = write(tmp_path / "c.json", node("n1"))
    web = write(tmp_path / "p.json", pod("web", schedulerName="other"))
    assert extender("fits", "-f", cluster, "-p", cluster) == (
        2,
        "",
        f"extender: {cluster}: holds no pod, only Node; name a file with a pod\n",
    )
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    agent: dict[str, object] = {"kind": "DaemonSet", "apiVersion": "apps/v1", "metadata": {"name": "web"}, "spec": spec}
    empty = write(tmp_path / "d.json", agent)
    assert extender("fits", "-f", cluster, "-p", empty)[2] == (
        f"extender: {empty}: holds no pod; name a file with a pod\n"
    )
    assert extender("fits", "-f", cluster, "-p", web) == (
        2,
        "",
        f'extender: {web}: Pod default/web: spec.schedulerName: "other" has no profile; want default-scheduler, '
        "or pass its configuration with --config\n",
    )
    status, out, err = extender("fits", "-f", cluster, "-p", web, "--limit", "0")
    assert (status, out, err.splitlines()[-1]) == (2, "", "Error: Invalid value for --limit: want at least 1")
