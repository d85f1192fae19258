"""Copy the comments of chart/values.yaml to the chart's README and schema; --check only compares.

The schema also gets the names of all feature gates.

A comment that starts with `# --` describes the value below it; further comment lines continue it.
"""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from extender.config.feature_gate_specs import FEATURE_SPECS

CHART = Path(__file__).resolve().parents[1] / "chart"
VALUE = re.compile(r"^(?P<indent> *)(?P<key>[A-Za-z]\w*):")
TABLE = re.compile(r"(?ms)^\| Value \|.*?(?=^$|\Z)")


@dataclass(frozen=True, slots=True)
class Value:
    """One value of the chart: its path, such as `("image", "tag")`, its default and its description."""

    path: tuple[str, ...]
    default: object
    description: str


def parse_values(text: str) -> Iterator[Value]:
    """Yield the values of a values.yaml that have a description, in order."""
    path: list[str] = []
    comment_lines: list[str] | None = None
    for line in text.splitlines():
        words = line.strip()
        if words.startswith("# --"):
            comment_lines = [words.removeprefix("# --").strip()]
        elif words.startswith("#") and comment_lines is not None:
            comment_lines.append(words.removeprefix("#").strip())
        elif found := VALUE.match(line):
            path[len(found["indent"]) // 2 :] = [found["key"]]
            if comment_lines is not None:
                yield Value(tuple(path), find_default(text, path), " ".join(comment_lines).replace("  ", " "))
            comment_lines = None


def find_default(text: str, path: list[str]) -> object:
    """Return the default of the value at *path*."""
    found: Any = yaml.safe_load(text)
    for key in path:
        found = found[key]
    return found


def render_table(text: str) -> str:
    """Return the values as a Markdown table."""
    rows = ["| Value | Default | Meaning |", "|---|---|---|"]
    for value in parse_values(text):
        meaning = value.description.replace("|", "\\|")
        rows.append(f"| `{'.'.join(value.path)}` | `{json.dumps(value.default)}` | {meaning} |")
    return "\n".join(rows) + "\n"


def add_descriptions(schema: dict[str, Any], text: str) -> dict[str, Any]:
    """Add the description of each value to the schema, and return it."""
    for value in parse_values(text):
        subschema = schema
        for key in value.path:
            subschema = subschema["properties"][key]
        subschema["description"] = value.description
    return schema


def set_feature_gates(schema: dict[str, Any]) -> dict[str, Any]:
    """Set the names of feature gates in the schema to those of all emulated releases, and return it."""
    names = sorted({name for specs in FEATURE_SPECS.values() for name in specs})
    gates = schema["properties"]["scheduler"]["properties"]["featureGates"]
    gates["patternProperties"] = {f"^(kube:)?({'|'.join(names)})$": {"type": "boolean"}}
    return schema


def main() -> int:
    """Write both files; with --check only report those that differ."""
    text = (CHART / "values.yaml").read_text()
    page, schema = CHART / "README.md", CHART / "values.schema.json"
    content = add_descriptions(set_feature_gates(json.loads(schema.read_text())), text)
    made = {
        page: TABLE.sub(lambda _: render_table(text), page.read_text()),
        schema: json.dumps(content, indent=2, ensure_ascii=False) + "\n",
    }
    stale = [file for file, content in made.items() if file.read_text() != content]
    if "--check" in sys.argv[1:]:
        for file in stale:
            sys.stderr.write(f"{file.name} differs from values.yaml; run `make chart`\n")
        return int(bool(stale))
    for file in stale:
        file.write_text(made[file])
    return 0


if __name__ == "__main__":
    sys.exit(main())
