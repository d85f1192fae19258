"""The options that select a live cluster and its pods."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from extender.analysis.input.input_errors import InputError
from extender.analysis.pod_selection import PodSelection
from extender.analysis.recorded_cluster import Recording
from extender.app import cluster_reader
from extender.cli.live.cluster_options import ClusterOptions, read_cluster_inputs
from extender.cli.recording_options import InputOptions
from extender.client.kubeconfig import CredentialSource

Command = Callable[..., tuple[int, str, str]]

NODE = '{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"},"status":{"allocatable":{"pods":"10"}}}\n'


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    contexts = [
        {"name": "a", "context": {"cluster": "c", "user": "u", "namespace": "shop"}},
        {"name": "b", "context": {"cluster": "c", "user": "u"}},
    ]
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps({"current-context": "a", "contexts": contexts, "clusters": [], "users": []}))
    return str(file)


def test_the_namespace_of_a_live_cluster_is_that_of_the_context(kubeconfig: str) -> None:
    assert ClusterOptions(kubeconfig).make_selection(["web"], live=True) == PodSelection(("web",), "shop")
    assert ClusterOptions(kubeconfig, "b").make_selection([], live=True).namespace == "default"
    assert ClusterOptions(kubeconfig, namespace="db").make_selection([], live=True).namespace == "db"
    assert ClusterOptions(kubeconfig, all_namespaces=True).make_selection([], live=True).namespace == ""


def test_without_a_namespace_all_namespaces_of_a_recording_are_selected() -> None:
    assert ClusterOptions().make_selection([], live=False) == PodSelection()


@pytest.mark.parametrize("live", [True, False])
def test_a_namespace_has_no_effect_with_all_namespaces_as_in_kubectl(live: bool) -> None:
    assert ClusterOptions(namespace="a", all_namespaces=True).make_selection([], live=live) == PodSelection()


def test_names_contradict_a_label_selector() -> None:
    with pytest.raises(InputError) as caught:
        ClusterOptions(selector="app=web").make_selection(["web"], live=False)
    assert str(caught.value) == "--selector: selects among all pending pods; leave out the names"


def test_an_invalid_label_selector_is_one_line(extender: Command) -> None:
    status, _, err = extender("explain", "-f", "-", "-l", "a b", stdin=NODE)
    assert status == 2
    assert err.startswith("extender: --selector: couldn't parse the selector string 'a b'")


@pytest.mark.parametrize("option", ["--kubeconfig", "--context"])
def test_an_option_of_a_live_cluster_contradicts_a_file(extender: Command, option: str) -> None:
    assert extender("explain", "-f", "-", option, "x", stdin=NODE) == (
        2,
        "",
        f"extender: {option}: selects a live cluster, but -f reads a file; leave out one of them\n",
    )


def test_namespace_and_labels_select_pending_pods_of_a_recording(extender: Command) -> None:
    pods = "".join(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": namespace, "labels": labels},
                "spec": {"containers": [{"name": "a"}]},
            }
        )
        + "\n"
        for name, namespace, labels in (("a", "x", {"app": "w"}), ("b", "y", {"app": "w"}), ("c", "x", {}))
    )
    for arguments, keys in (
        (("-n", "x"), ["x/a", "x/c"]),
        (("-l", "app=w"), ["x/a", "y/b"]),
        (("-n", "x", "-l", "!app"), ["x/c"]),
        (("pods", "-l", "app=w"), ["x/a", "y/b"]),
    ):
        out = extender("explain", "-f", "-", "-o", "json", *arguments, stdin=NODE + pods)[1]
        assert sorted(json.loads(out)["pods"]) == keys


def test_a_later_file_replaces_a_node_with_override(extender: Command, tmp_path: Path) -> None:
    file = tmp_path / "node.json"
    file.write_text(NODE.replace('"10"', '"0"'))
    pod = '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"a"}]}}\n'
    arguments = ("explain", "-f", "-", "-f", str(file), "--exit-code")
    assert extender(*arguments, stdin=NODE + pod)[0] == 4
    assert extender(*arguments, "--override", stdin=NODE + pod)[0] == 3


@pytest.mark.usefixtures("no_cluster")
@pytest.mark.parametrize("command", ["explain", "simulate"])
@pytest.mark.parametrize("nodes", [0, 1])
def test_a_note_says_that_a_manifest_alone_has_no_nodes(extender: Command, command: str, nodes: int) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [{"name": "app"}]}}
    status = {"allocatable": {"cpu": "1", "pods": "1"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": status}
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod, *[node] * nodes]})
    _, _, err = extender(command, "-f", "-", stdin=text)
    note = "extender: note: no file has a node; add -f with a recording, or ask the live cluster without -f\n"
    assert err == ("" if nodes else note)


def test_without_a_cluster_the_error_names_the_ways_out(extender: Command) -> None:
    status, out, err = extender("explain")
    assert (status, out) == (2, "")
    assert err.startswith("extender: the cluster: no kubeconfig: ")
    assert err.endswith("; pass --kubeconfig, or use a recording with -f\n")


@pytest.mark.parametrize(
    ("server_version", "flag", "release"),
    [
        ("v1.37.2", "", "1.37"),
        ("v1.36.3", "", "1.36"),
        ("v1.39.0", "", "1.37"),
        ("v1.30.1", "", "1.36"),
        ("", "1.37", "1.37"),
        ("", "1.36", "1.36"),
    ],
)
def test_a_live_cluster_is_explained_with_the_release_of_its_api_server(
    kubeconfig: str, monkeypatch: pytest.MonkeyPatch, server_version: str, flag: str, release: str
) -> None:
    """An empty server version stands for a server that must not be asked, because the flag selects the release."""

    def read_kubernetes_version(source: CredentialSource) -> str:
        assert (source.kubeconfig, bool(server_version)) == (kubeconfig, True)
        return server_version

    def read_cluster_for_pods(*_: object) -> Recording:
        return Recording()

    monkeypatch.setattr(cluster_reader, "read_kubernetes_version", read_kubernetes_version)
    monkeypatch.setattr(cluster_reader, "read_cluster_for_pods", read_cluster_for_pods)
    inputs, _ = read_cluster_inputs(None, InputOptions(emulated_version=flag), ClusterOptions(kubeconfig))
    assert inputs.setup.gates.release.version == release


def test_the_notes_of_a_live_cluster_are_printed(
    kubeconfig: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def read_cluster_for_pods(*_: object) -> Recording:
        return Recording(notes=("deployment/shop/web: its controller cannot create pods: exceeded quota: team",))

    monkeypatch.setattr(cluster_reader, "read_cluster_for_pods", read_cluster_for_pods)
    read_cluster_inputs(None, InputOptions(emulated_version="1.37"), ClusterOptions(kubeconfig))
    assert capsys.readouterr().err == (
        "extender: note: deployment/shop/web: its controller cannot create pods: exceeded quota: team\n"
    )


def test_an_invalid_release_is_an_error_before_the_cluster_is_read(extender: Command, kubeconfig: str) -> None:
    assert extender("explain", "--kubeconfig", kubeconfig, "--emulated-version", "1.35") == (
        2,
        "",
        "extender: --emulated-version: 1.35 cannot be emulated; want 1.36 or 1.37\n",
    )
