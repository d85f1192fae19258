"""The configuration of commands that read a recorded cluster: the flag, the recording, or the default."""

from pathlib import Path

import pytest

from extender.analysis.input.input_errors import InputError
from extender.cli.recording_options import InputOptions, add_file_to_errors, read_inputs
from extender.config.errors import ConfigError, FieldError

NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.mark.parametrize(
    ("recorded", "flag", "expected"),
    [("", "", "default-scheduler"), ("recorded", "", "recorded"), ("recorded", "flag", "flag")],
    ids=["neither", "recorded", "both"],
)
def test_the_flag_config_comes_before_the_recorded_configuration(
    tmp_path: Path, recorded: str, flag: str, expected: str
) -> None:
    cluster, config = tmp_path / "cluster.yaml", tmp_path / "scheduler.yaml"
    cluster.write_text(NODE + (f"---\n{HEAD}profiles: [{{schedulerName: {recorded}}}]\n" if recorded else ""))
    config.write_text(f"{HEAD}profiles: [{{schedulerName: {flag}}}]\n")
    inputs = read_inputs([str(cluster)], InputOptions(str(config) if flag else ""))
    assert list(inputs.setup.profiles) == [expected]


def test_configuration_errors_get_their_file() -> None:
    error = ConfigError([FieldError("profiles[0].plugins", "a.yaml: is unknown")])
    assert list(map(str, add_file_to_errors(error, "a.yaml").errors)) == ["a.yaml: profiles[0].plugins: is unknown"]


def test_a_missing_configuration_is_an_input_error(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(NODE)
    with pytest.raises(InputError) as caught:
        read_inputs([str(cluster)], InputOptions(str(tmp_path / "missing.yaml")))
    assert [str(line) for line in caught.value.errors] == [
        f"{tmp_path}/missing.yaml: no such file; check the path, or write - to read standard input"
    ]


@pytest.mark.parametrize(
    ("recorded_version", "flag", "release"),
    [
        ("v1.37.2", "", "1.37"),
        ("v1.36.3+k3s1", "", "1.36"),
        ("v1.37.2", "1.36", "1.36"),
        ("v1.30.1", "", "1.36"),
        ("", "", "1.37"),
        ("", "1.37", "1.37"),
    ],
    ids=["recorded", "a distribution", "the flag wins", "not emulated", "unknown", "only the flag"],
)
@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_the_release_is_that_of_the_recorded_api_server(
    tmp_path: Path, recorded_version: str, flag: str, release: str, suffix: str
) -> None:
    cluster = tmp_path / f"cluster{suffix}"
    version = f'"kubernetesVersion": "{recorded_version}", ' if recorded_version else ""
    node = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}'
    comment = "# not JSON\n" if suffix == ".yaml" else ""
    cluster.write_text(f'{comment}{{"apiVersion": "v1", "kind": "List", {version}"items": [{node}]}}')
    inputs = read_inputs([str(cluster)], InputOptions(emulated_version=flag))
    assert inputs.setup.gates.release.version == release


@pytest.mark.parametrize(
    ("recorded_version", "flag", "release"),
    [("v1.33.13", "", "1.36"), ("v1.38.0", "", "1.37"), ("v1.33.13", "1.36", ""), ("v1.36.0", "", ""), ("", "", "")],
    ids=["older", "newer", "selected", "emulated", "unknown"],
)
def test_a_note_names_the_rules_in_force_if_the_release_cannot_be_emulated(
    tmp_path: Path, recorded_version: str, flag: str, release: str
) -> None:
    cluster = tmp_path / "cluster.json"
    version = f'"kubernetesVersion": "{recorded_version}", ' if recorded_version else ""
    node = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}'
    cluster.write_text(f'{{"apiVersion": "v1", "kind": "List", {version}"items": [{node}]}}')
    notes = list[str]()
    read_inputs([str(cluster)], InputOptions(emulated_version=flag), notes.append)
    note = (
        f"note: the API server is {recorded_version}; the rules are those of kube-scheduler {release}, the nearest "
        "release that can be emulated"
    )
    assert notes == [note] * bool(release)


def test_a_recorded_version_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.json"
    cluster.write_text('{"apiVersion": "v1", "kind": "List", "kubernetesVersion": 1.37, "items": []}')
    with pytest.raises(InputError, match="kubernetesVersion: want text"):
        read_inputs([str(cluster)], InputOptions())
