"""A written recording reads back to the same cluster, and has no secrets."""

import gzip
import io
from pathlib import Path

import pytest

from extender.analysis.recorded_cluster import Recording, parse_recording, read_recording
from extender.analysis.recording_writer import write_recording

DEMO = Path(__file__).parents[3] / "docs/examples/demo/cluster.yaml"
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: web
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"env": "hunter2"}'
    volume.kubernetes.io/selected-node: n1
    example.com/note: internal
    plugins.example.org/weight: "7"
spec:
  containers:
  - name: a
    image: web:1
    command: [serve, --token=hunter2]
    env: [{name: PASSWORD, value: hunter2}]
    resources: {requests: {cpu: 100m}}
"""


def write(recording: Recording, *prefixes: str, compress: bool = False) -> bytes:
    file = io.BytesIO()
    assert write_recording(recording, file, compress=compress, annotation_prefixes=prefixes) == len(recording.objects)
    return file.getvalue()


def test_the_objects_that_scheduling_reads_are_the_same_after_writing() -> None:
    recording = read_recording([str(DEMO)])
    copy = parse_recording(write(recording), "copy")
    assert copy.objects == recording.objects
    assert copy.recorded_kinds == recording.recorded_kinds
    assert "StatefulSet" in copy.recorded_kinds  # recorded without objects


def test_environment_commands_and_foreign_annotations_are_left_out() -> None:
    data = write(parse_recording(POD.encode(), "c.yaml"))
    assert b"hunter2" not in data
    assert b"internal" not in data
    (pod,) = parse_recording(data, "copy").objects
    assert pod.metadata.annotations == {"volume.kubernetes.io/selected-node": "n1"}


def test_annotations_that_a_plugin_reads_are_written_by_prefix() -> None:
    (pod,) = parse_recording(write(parse_recording(POD.encode(), "c"), "plugins.example.org/"), "copy").objects
    assert pod.metadata.annotations["plugins.example.org/weight"] == "7"
    assert "example.com/note" not in pod.metadata.annotations


@pytest.mark.parametrize("compress", [False, True])
def test_unreadable_kinds_are_written(compress: bool) -> None:
    recording = Recording(recorded_kinds=frozenset(["Node"]), unreadable_kinds={"Service": "forbidden"})
    data = write(recording, compress=compress)
    copy = parse_recording(gzip.decompress(data) if compress else data, "copy")
    assert (copy.recorded_kinds, copy.unreadable_kinds) == ({"Node"}, {"Service": "forbidden"})


def test_the_version_of_the_api_server_is_written_if_it_is_known() -> None:
    data = write(Recording(kubernetes_version="v1.37.2"))
    assert b'"kubernetesVersion":"v1.37.2"' in data
    assert parse_recording(data, "copy").kubernetes_version == "v1.37.2"
    assert b"kubernetesVersion" not in write(Recording())
