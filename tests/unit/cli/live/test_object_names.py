"""The names that a shell completes; test_completion.py has those that a shell asks for."""

from pathlib import Path

import pytest

from extender.cli.live import object_names
from extender.cli.live.object_names import list_live_names, list_recorded_names
from tests.unit.cli.live.test_kubectl_plugin import install_kubectl


def test_names_are_those_that_kubectl_lists(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install_kubectl(tmp_path, monkeypatch, "echo node/n1; echo node/n2")
    assert list_live_names("nodes", []) == ["n1", "n2"]


def test_without_kubectl_there_are_no_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list_live_names("nodes", []) == []


def test_a_large_recording_is_not_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text("{kind: Pod, apiVersion: v1, metadata: {name: web}, spec: {containers: [{name: a}]}}")
    assert list_recorded_names("pods", [str(file)]) == ["default/web"]
    monkeypatch.setattr(object_names, "_MAX_FILE_BYTES", 9)
    assert list_recorded_names("pods", [str(file)]) == []
