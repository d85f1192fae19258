"""Carry the comments of chart/values.yaml into the chart's README and schema; --check only compares.

A comment that begins with `# --` belongs to the value below it; it goes on over the lines that follow.
"""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).resolve().parents[1] / "chart"
VALUE = re.compile(r"^(?P<indent> *)(?P<key>[A-Za-z]\w*):")
TABLE = re.compile(r"(?ms)^\| Value \|.*?(?=^$|\Z)")


@dataclass(frozen=True, slots=True)
class Value:
    """One value that a user may set: its path, such as `("image", "tag")`, its default, and what it means."""

    path: tuple[str, ...]
    default: object
    meaning: str


def values(text: str) -> Iterator[Value]:
    """All values of a values.yaml that carry a comment, in order."""
    path: list[str] = []
    said: list[str] | None = None
    for line in text.splitlines():
        words = line.strip()
        if words.startswith("# --"):
            said = [words.removeprefix("# --").strip()]
        elif words.startswith("#") and said is not None:
            said.append(words.removeprefix("#").strip())
        elif found := VALUE.match(line):
            path[len(found["indent"]) // 2 :] = [found["key"]]
            if said is not None:
                yield Value(tuple(path), default_of(text, path), " ".join(said).replace("  ", " "))
            said = None


def default_of(text: str, path: list[str]) -> object:
    """What the value at *path* is, unless set."""
    found: Any = yaml.safe_load(text)
    for key in path:
        found = found[key]
    return found


def table(text: str) -> str:
    """The values as a table of Markdown."""
    rows = ["| Value | Default | Meaning |", "|---|---|---|"]
    for value in values(text):
        meaning = value.meaning.replace("|", "\\|")
        rows.append(f"| `{'.'.join(value.path)}` | `{json.dumps(value.default)}` | {meaning} |")
    return "\n".join(rows) + "\n"


def described(schema: dict[str, Any], text: str) -> dict[str, Any]:
    """The schema with what each value means."""
    for value in values(text):
        place = schema
        for key in value.path:
            place = place["properties"][key]
        place["description"] = value.meaning
    return schema


def main() -> int:
    """Write both files, or with --check say whether they are as they would be written."""
    text = (CHART / "values.yaml").read_text()
    page, schema = CHART / "README.md", CHART / "values.schema.json"
    made = {
        page: TABLE.sub(lambda _: table(text), page.read_text()),
        schema: json.dumps(described(json.loads(schema.read_text()), text), indent=2, ensure_ascii=False) + "\n",
    }
    stale = [file for file, content in made.items() if file.read_text() != content]
    if "--check" in sys.argv[1:]:
        for file in stale:
            sys.stderr.write(f"{file.name} does not say what values.yaml says; run `make chart`\n")
        return int(bool(stale))
    for file in stale:
        file.write_text(made[file])
    return 0


if __name__ == "__main__":
    sys.exit(main())
