"""The commands of docs/what-if.md print what the page shows."""

import shutil
import time
from pathlib import Path

from tests.doc_pages import DOCS, EXTENDER, PageRunner, parse_blocks, parse_steps


def test_the_commands_of_the_page(tmp_path: Path) -> None:
    shutil.copy(DOCS / "examples" / "demo" / "cluster.yaml", tmp_path)
    blocks = parse_blocks(DOCS / "what-if.md")
    runner = PageRunner(tmp_path, {"extender": EXTENDER}, {})
    runner.write_files(blocks)
    steps = parse_steps(blocks)
    assert len(steps) == 5
    for step in steps:
        runner.run_step(step, time.sleep)
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) > 12
