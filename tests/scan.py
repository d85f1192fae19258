"""Scans the Dockerfile, the rendered examples of the chart, and the workflows: `make scan`. Exceptions: .scan/."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import yaml

from tests.chart.helm import CHART, NAMESPACE, render_chart

ROOT: Final = Path(__file__).resolve().parents[1]
PROGRAM_FOLDER: Final = ROOT / "build" / "scan-env" / "bin"
RENDERED_FOLDER: Final = ROOT / "build" / "rendered"

SCANS: Final = (
    ("hadolint", "--config", ".scan/hadolint.yaml", "Dockerfile"),
    ("checkov", "--config-file", ".scan/checkov.yaml", "--directory", str(RENDERED_FOLDER)),
    ("zizmor", "--offline", "--quiet", "--no-progress", ".github/workflows"),
)


def render_examples() -> int:
    """Render all examples of the chart and copy the Dockerfile to build/rendered; return the number of examples."""
    shutil.rmtree(RENDERED_FOLDER, ignore_errors=True)
    RENDERED_FOLDER.mkdir(parents=True)
    shutil.copy(ROOT / "Dockerfile", RENDERED_FOLDER)
    examples = sorted((CHART / "ci").glob("*.yaml"))
    for values in examples:
        objects = render_chart(values)
        for obj in objects:
            obj["metadata"].setdefault("namespace", NAMESPACE)
        (RENDERED_FOLDER / values.name).write_text(yaml.safe_dump_all(objects))
    return len(examples)


def main() -> int:
    """Run all scans; return 1 if one has findings."""
    print(f"{render_examples()} examples of the chart rendered")
    failed = []
    for name, *arguments in SCANS:
        process = subprocess.run([PROGRAM_FOLDER / name, *arguments], cwd=ROOT, check=False)
        print(f"{name}: {'nothing found' if process.returncode == 0 else 'see above'}", flush=True)
        failed += [name] * bool(process.returncode)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
