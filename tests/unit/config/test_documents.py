"""Parsing and dumping of YAML and JSON documents."""

from time import process_time

import pytest
import yaml

from extender.config.documents import dump_yaml, limit_events, normalize, parse_document
from extender.config.errors import ConfigError, FieldError

SCALARS = {
    "1": 1,
    "0x10": 16,
    "1.5": 1.5,
    "1e3": 1000.0,
    "12e4567": "12e4567",
    "-1E999": "-1E999",
    "true": True,
    "y": True,
    "N": False,
    "null": None,
    "2020-01-01": "2020-01-01",
    "1:30": "1:30",
    "=": "=",
    "x": "x",
}


@pytest.mark.parametrize(("text", "value"), SCALARS.items(), ids=SCALARS.keys())
def test_a_scalar_is_resolved_as_in_go(text: str, value: object) -> None:
    assert parse_document(f"a: {text}".encode(), "f") == ({"a": value}, [])


def test_an_empty_document_is_null() -> None:
    assert parse_document(b"", "f") == (None, [])


@pytest.mark.parametrize("end", ["---\n", "---\n# nothing\n---\n", "...\n---\n"])
def test_empty_documents_at_the_end_are_ignored_as_in_kube_scheduler(end: str) -> None:
    assert parse_document(f"a: 1\n{end}".encode(), "f.yaml") == ({"a": 1}, [])


@pytest.mark.parametrize("second", ["b: 1", "- b", "text", "&x {}"])
def test_a_second_document_with_a_value_is_rejected(second: str) -> None:
    with pytest.raises(ConfigError, match=r"f\.yaml: line 2, column 1: a second document; want one document per file"):
        parse_document(f"a: 1\n---\n{second}\n".encode(), "f.yaml")


def test_duplicate_keys_are_errors_in_yaml_and_json() -> None:
    assert parse_document(b"a:\n  b: 1\n  b: 2\n", "f")[1] == [FieldError("a.b", 'duplicate field "b" (line 3)')]
    assert parse_document(b'{"a": {"b": 1, "b": 2}}', "f")[1] == [FieldError("a.b", 'duplicate field "b"')]


def test_each_duplicate_key_of_a_json_object_is_one_error() -> None:
    """An object has a hundred thousand keys. Counting each of them separately would take minutes."""
    keys = ("k0", "k1", *(f"k{number}" for number in range(100_000)))
    text = "{" + ",".join(f'"{key}":1' for key in keys) + "}"
    assert parse_document(text.encode(), "f", len(text))[1] == [
        FieldError("k0", 'duplicate field "k0"'),
        FieldError("k1", 'duplicate field "k1"'),
    ]


@pytest.mark.parametrize("line_break", ["\n", "\r", "\r\n", "\x85", "\u2028"])
def test_a_document_with_more_than_100_tag_directives_is_rejected(line_break: str) -> None:
    directives = [f"%TAG !{number}! tag:example,2026:" for number in range(101)]
    accepted, rejected = (
        line_break.join([*lines, "---", 'a: ["%TAG",']).encode() + b'\n "%TAG"]'
        for lines in (directives[:100], directives)
    )
    assert parse_document(accepted, "f") == ({"a": ["%TAG", "%TAG"]}, [])
    with pytest.raises(ConfigError) as caught:
        parse_document(rejected, "f")
    assert str(caught.value) == "f: more than 100 lines begin with %TAG; leave them out"


def test_merge_keys_are_no_duplicates() -> None:
    text = b"v: &v {a: 1}\nw: &w {b: 2}\nz:\n  <<: *v\n  <<: *w\n"
    value, errors = parse_document(text, "f")
    assert errors == []
    assert isinstance(value, dict)
    assert value["z"]["b"] == 2


MERGED_DUPLICATES = {
    "a key after the merge": "{<<: *x, a: 2}",
    "a key before the merge": "{a: 2, <<: *x}",
    "two merges": "{<<: *x, <<: {a: 2}}",
    "a list of merges": "{<<: [*x, *x]}",
    "a merge of a merge": "{<<: {<<: *x}, a: 2}",
}


@pytest.mark.parametrize("mapping", MERGED_DUPLICATES.values(), ids=MERGED_DUPLICATES)
def test_a_merged_key_cannot_be_replaced(mapping: str) -> None:
    """kube-scheduler ends with `key "a" already set in map`."""
    _, errors = parse_document(f"x: &x {{a: 1}}\nz: {mapping}\n".encode(), "f")
    assert [error.path for error in errors] == ["z.a"]
    assert errors[0].message.startswith('duplicate field "a" (line ')


def test_a_mapping_cannot_merge_itself() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_document(b"a: &a {<<: *a, x: 1}\n", "f")
    assert str(caught.value) == "f: line 1, column 8: the anchor's value contains itself"


def test_a_json_syntax_error_is_reported_in_terms_of_json() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_document(b'{"a" 1}', "f")
    assert str(caught.value) == "f: line 1, column 6: Expecting ':' delimiter"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a:\n\tb: c\n", "f: line 2, column 1: a tab indents the line; indent with spaces"),
        (b"a: b\n\tc: d\n", "f: line 2, column 1: a tab indents the line; indent with spaces"),
        (b"a:\n-\tb: c\n", 'f: line 2, column 2: a tab follows "-"; write a space'),
        (b"a:\tb\nc:\t@d\n", "f: line 2, column 4: a value starts with @; put it in quotes"),
        (b"a: @b\n", "f: line 1, column 4: a value starts with @; put it in quotes"),
    ],
)
def test_a_character_that_cannot_begin_a_value_is_named(text: bytes, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_document(text, "f")
    assert str(caught.value) == message


def test_values_without_a_json_type_are_errors() -> None:
    value, errors = normalize({"a": float("nan"), 5: "x", "b": (1, None)})
    assert value == {"a": None, "b": [1, None]}
    assert errors == [
        FieldError("a", "expected a JSON value, got the number nan"),
        FieldError("", "field names have to be strings, got the integer 5"),
    ]


def test_the_depth_of_yaml_events_is_limited() -> None:
    events = list(yaml.parse("[[1]]"))
    assert list(limit_events(events, 2)) == events
    with pytest.raises(yaml.MarkedYAMLError, match="nested too deeply; want at most 1 levels"):
        list(limit_events(events, 1))


def test_yaml_is_dumped_with_sorted_keys_and_quotes_where_needed() -> None:
    shared = ["x"]
    value = {"b": shared, "a": shared, "c": "1e3", "d": "", "e": "two\nlines\n", "f": True}
    assert dump_yaml(value) == 'a:\n- x\nb:\n- x\nc: "1e3"\nd: ""\ne: |\n  two\n  lines\nf: true\n'


@pytest.mark.parametrize(
    "text", ["y", "N", "on", "2001-01-01", "2001-1-2 3:4:5.6", "2001-01-01T00:00:00Z", "12:30", "1:30:20.5", "1_0.5"]
)
def test_a_text_that_yaml_1_1_reads_as_another_value_is_quoted(text: str) -> None:
    """kube-scheduler and kubectl read `y` as true.

    Source: go.yaml.in/yaml/v2, resolve.go, resolve; encode.go, isBase60Float (2.4).
    """
    assert dump_yaml([text]) == f'- "{text}"\n'


@pytest.mark.parametrize("text", ["yy", "2001-01", "12:60", "a:1", "1.2.3", "v1", "1s", "127.0.0.1:80"])
def test_another_text_is_not_quoted(text: str) -> None:
    assert dump_yaml([text]) == f"- {text}\n"


@pytest.mark.parametrize("text", [f"{'1' * 40_000}x", f"1.{'1' * 40_000}x", f"1{':1' * 20_000}x", "_" * 40_000])
def test_a_long_text_is_dumped_at_once(text: str) -> None:
    """Names in recordings have any length. A pattern that backtracks would take half a minute."""
    start_time = process_time()
    assert dump_yaml([text]) == f"- {text}\n"
    assert process_time() - start_time < 5


def test_values_are_counted_with_aliases_and_keys() -> None:
    events = list(yaml.parse("a: &a [1, 2]\nb: [*a, *a]\n"))
    assert list(limit_events(events, 3, 13)) == events  # 1 object, 2 keys, 3 in a, 1 list in b, and twice 3 in it
    with pytest.raises(yaml.MarkedYAMLError, match="more than 12 values; want a smaller document"):
        list(limit_events(events, 3, 12))


@pytest.mark.parametrize(
    ("values", "aliases", "is_valid"),
    [(10_000, 40, True), (10_000, 50, False), (100_000, 3, True), (100_000, 10, False), (100, 40_000, False)],
)
def test_most_values_of_a_large_document_may_not_come_from_aliases(values: int, aliases: int, is_valid: bool) -> None:
    mark = yaml.Mark("f", 0, 0, 0, None, 0)
    anchor = yaml.SequenceStartEvent("a", None, True, mark, mark)
    scalars = [yaml.ScalarEvent(None, None, (True, False), "x")] * (values - 1)
    alias_events = [yaml.AliasEvent("a", mark, mark)] * aliases
    events = [anchor, *scalars, yaml.SequenceEndEvent(), *alias_events]
    if is_valid:
        assert len(list(limit_events(events, 2))) == len(events)
    else:
        with pytest.raises(yaml.MarkedYAMLError, match="document contains excessive aliasing"):
            list(limit_events(events, 2))


def test_a_document_of_more_than_a_mebibyte_or_200_000_values_is_rejected() -> None:
    with pytest.raises(ConfigError, match="f: has more than 1 MiB"):
        parse_document(b"#" * (1024**2 + 1), "f")
    assert parse_document(b"#" * 1024**2, "f") == (None, [])
    with pytest.raises(ConfigError, match="f: line 1, column 400000: more than 200000 values"):
        parse_document(b"[" + b"x," * 200_000 + b"]", "f")
