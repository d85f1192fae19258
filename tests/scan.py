"""Scans the Dockerfile, the chart as its examples render it, and the workflows: `make scan`; .scan/ has exceptions."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import yaml

from tests.chart.helm import CHART, NAMESPACE, rendered

ROOT: Final = Path(__file__).resolve().parents[1]
PROGRAMS: Final = ROOT / "build" / "scan-env" / "bin"
RENDERED: Final = ROOT / "build" / "rendered"

SCANS: Final = (
    ("hadolint", "--config", ".scan/hadolint.yaml", "Dockerfile"),
    ("checkov", "--config-file", ".scan/checkov.yaml", "--directory", str(RENDERED)),
    ("zizmor", "--offline", "--quiet", "--no-progress", ".github/workflows"),
)


def render() -> int:
    """Renders every example of the chart into build/rendered, beside the Dockerfile; how many examples there are."""
    shutil.rmtree(RENDERED, ignore_errors=True)
    RENDERED.mkdir(parents=True)
    shutil.copy(ROOT / "Dockerfile", RENDERED)
    examples = sorted((CHART / "ci").glob("*.yaml"))
    for values in examples:
        objects = rendered(values)
        for one in objects:
            one["metadata"].setdefault("namespace", NAMESPACE)
        (RENDERED / values.name).write_text(yaml.safe_dump_all(objects))
    return len(examples)


def main() -> int:
    """Runs all of them; 1 if one finds something that is not excepted."""
    print(f"{render()} examples of the chart rendered")
    failed = []
    for name, *arguments in SCANS:
        done = subprocess.run([PROGRAMS / name, *arguments], cwd=ROOT, check=False)
        print(f"{name}: {'nothing found' if done.returncode == 0 else 'see above'}", flush=True)
        failed += [name] * bool(done.returncode)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
