"""The file of a recording: it replaces an old one, and no link leads the writer to another file."""

import json
from pathlib import Path

from extender.analysis.recorded_cluster import Recording
from extender.cli.live.record import write_recording_file


def test_the_recording_is_not_written_through_a_link(tmp_path: Path) -> None:
    other_file, file = tmp_path / "other", tmp_path / "cluster.json"
    other_file.write_text("other")
    (tmp_path / ".cluster.json.partial").symlink_to(other_file)
    assert write_recording_file(Recording(), str(file), ()) == 0
    assert other_file.read_text() == "other"
    assert json.loads(file.read_text())["items"] == []
    assert file.stat().st_mode & 0o777 == 0o600
