"""The commands of docs/shared-gpus.md print what the page shows, and the plugin's messages are those of the page."""

import time
from pathlib import Path

from extender.plugins.gpu_share import claimed_gpus
from tests.doc_pages import DOCS, EXTENDER, PageRunner, parse_blocks, parse_steps


def test_the_commands_of_the_page(tmp_path: Path) -> None:
    blocks = parse_blocks(DOCS / "shared-gpus.md")
    runner = PageRunner(tmp_path, {"extender": EXTENDER}, {})
    runner.write_files(blocks)
    (step,) = parse_steps(blocks)
    runner.run_step(step, time.sleep)


def test_the_page_has_the_messages_of_the_plugin() -> None:
    text = " ".join((DOCS / "shared-gpus.md").read_text().split())
    assert claimed_gpus.ONLY_CLAIMS.text in text
    assert claimed_gpus.MIXED_USE.text in text
