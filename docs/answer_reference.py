"""The page about JSON answers, and the JSON Schema files of the package, for write_reference.py."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from extender.answers.json_schemas import ANSWER_TYPES, RECORDING, make_json_schema
from extender.answers.reason_codes import ReasonCode
from extender.answers.schema_version import SCHEMA_VERSION

SCHEMAS = Path(__file__).resolve().parents[1] / "extender" / "answers" / "schemas"
SOURCES = {
    "Explanation": "`extender explain -o json`",
    "Simulation": "`extender simulate -o json`",
    "WhatIf": "`extender what-if -o json`",
    "SweepResult": "a line of `extender what-if --sweep FILE -o json`",
    "Fits": "`extender fits -o json` with one pod",
    "FitsByShape": "`extender fits -o json` with several pods",
    "Comparison": "`extender compare -o json`",
    "Rebalance": "`extender rebalance -o json`",
    "ExperimentRun": "a line of `extender experiment -o jsonl`",
    "ExperimentCurve": "a line of `extender experiment --curves`",
    "Recording": "the file of `extender record`",
}
INTRODUCTION = f"""\
# JSON answers

This page is for programs that read the answers of `extender`: the version, the JSON Schemas and the codes of reasons.

## Version

Each answer has `schemaVersion`, here `{SCHEMA_VERSION}`, and `kind`. Within a major version, no field is removed or
changed, and a code keeps its meaning. A minor version may add fields, kinds and codes: ignore unknown ones.
`extender` reads recordings of the same major version, and those of before version 1.0, which have no version.

```python
from importlib.resources import files

schema = (files("extender") / "answers" / "schemas" / "Fits.json").read_text()
```

The wheel contains these JSON Schema files (2020-12). `-o yaml` gives the same values.

| Kind | Source | File |
| --- | --- | --- |
"""
CODES = """
## Reason codes

`reasonCodes` has one code for each text of `reasons`, in the same order. The texts are kube-scheduler's and change with
releases; match the codes. kube-scheduler itself has no such codes.

| Code | Meaning |
| --- | --- |
"""


def render_answers() -> str:
    """Return the page."""
    kinds = "".join(
        f"| `{kind}` | {SOURCES[kind]} | `extender/answers/schemas/{kind}.json` |\n" for kind in ANSWER_TYPES
    )
    codes = "".join(f"| `{code.value}` | {code.meaning} |\n" for code in ReasonCode)
    fields = "\n## Fields\n" + "".join(_render_kind(kind) for kind in ANSWER_TYPES)
    return INTRODUCTION + kinds + CODES + codes + fields


def render_schema_files() -> dict[Path, str]:
    """Return the contents of the schema files."""
    return {SCHEMAS / f"{kind}.json": json.dumps(make_json_schema(kind), indent=2) + "\n" for kind in ANSWER_TYPES}


def _render_kind(kind: str) -> str:
    schema = make_json_schema(kind)
    head = "" if kind == RECORDING else f"\n{schema['description']}\n"
    rows = "".join(f"| `{path}` | {text} | {meaning} |\n" for path, text, meaning in _list_fields(schema, schema, ""))
    return f"\n### {kind}\n{head}\n| Field | Type | Meaning |\n| --- | --- | --- |\n{rows}"


def _list_fields(schema: Mapping[str, Any], root: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str, str]]:
    """Yield the path, the type and the meaning of each field, and of the fields below it."""
    for name, field in schema.get("properties", {}).items():
        text, nested, suffix = _describe(field, root)
        path = f"{prefix}{name}{suffix}"
        yield path, text, field.get("description") or (nested or {}).get("description", "")
        if nested is not None:
            yield from _list_fields(nested, root, f"{path}.")


def _describe(field: Mapping[str, Any], root: Mapping[str, Any]) -> tuple[str, Mapping[str, Any] | None, str]:
    """Return the type as text, the schema of nested fields, and the suffix of the path to them."""
    if "$ref" in field:
        return "object", root["$defs"][field["$ref"].rpartition("/")[2]], ""
    if "anyOf" in field:
        variant = next(each for each in field["anyOf"] if each != {"type": "null"})
        text, nested, suffix = _describe(variant, root)
        return f"{text} or null", nested, suffix
    if "const" in field:
        return f"`{field['const']}`", None, ""
    if field.get("type") == "array":
        text, nested, suffix = _describe(field["items"], root)
        return f"list of {text}", nested, f"[]{suffix}"
    if field.get("type") == "object" and isinstance(field.get("additionalProperties"), dict):
        text, nested, suffix = _describe(field["additionalProperties"], root)
        return f"object of {text} by name", nested, f".*{suffix}"
    return str(field.get("type", "any")), None, ""
