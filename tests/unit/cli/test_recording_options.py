"""The configuration of commands that read a recorded cluster: the flag, the recording, or the default."""

from pathlib import Path

import pytest

from extender.analysis.input_errors import InputError
from extender.cli.recording_options import add_file_to_errors, read_inputs
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
    inputs = read_inputs([str(cluster)], str(config) if flag else "")
    assert list(inputs.scheduling.profiles) == [expected]


def test_configuration_errors_get_their_file() -> None:
    error = ConfigError([FieldError("profiles[0].plugins", "a.yaml: is unknown")])
    assert list(map(str, add_file_to_errors(error, "a.yaml").errors)) == ["a.yaml: profiles[0].plugins: is unknown"]


def test_a_missing_configuration_is_an_input_error(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(NODE)
    with pytest.raises(InputError) as caught:
        read_inputs([str(cluster)], str(tmp_path / "missing.yaml"))
    assert [str(line) for line in caught.value.errors] == [
        f"{tmp_path}/missing.yaml: no such file; check the path, or write - to read standard input"
    ]
