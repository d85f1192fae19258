"""Command lines are parsed as by Go's pflag."""

import pytest

from extender.cli.pflag import (
    BOOL,
    DURATION,
    FLOAT,
    INT,
    IP,
    LEVEL,
    PAIRS,
    STRING,
    STRINGS,
    Flag,
    FlagError,
    ParsedFlags,
    format_help,
    parse,
)

FLAGS = {
    flag.name: flag
    for flag in (
        Flag("config", STRING, "", ""),
        Flag("leader-elect", BOOL, True, ""),
        Flag("lease-duration", DURATION, 15.0, ""),
        Flag("port", INT, 10259, ""),
        Flag("qps", FLOAT, 50.0, ""),
        Flag("address", IP, "0.0.0.0", ""),  # noqa: S104
        Flag("paths", STRINGS, ("/healthz",), ""),
        Flag("labels", PAIRS, (), ""),
        Flag("v", LEVEL, 0, "", short="v"),
        Flag("help", BOOL, False, "", short="h"),
    )
}


def parse_words(*words: str) -> ParsedFlags:
    return parse(words, FLAGS)


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        ("--config=a", "config", "a"),
        ("--config a", "config", "a"),
        ("--config=", "config", ""),
        ("--config --port", "config", "--port"),
        ("--leader-elect", "leader-elect", True),
        ("--leader-elect=false", "leader-elect", False),
        ("--leader-elect=F", "leader-elect", False),
        ("--leader_elect=0", "leader-elect", False),
        ("--lease-duration=1m30s", "lease-duration", 90.0),
        ("--port=-1", "port", -1),
        ("--qps=0.5", "qps", 0.5),
        ("--address=::", "address", "::"),
        ("--paths=/a,/b", "paths", ("/a", "/b")),
        ("--paths=/a --paths /b", "paths", ("/a", "/b")),
        ("--paths=", "paths", ()),
        ("--labels=a=1,b=2", "labels", ("a=1", "b=2")),
        ("--labels=metric,label=1,2", "labels", ("metric,label=1,2",)),
        ('--labels="metric,label=1,2"', "labels", ("metric,label=1,2",)),
        ('--labels="m,a=1,2","m,b=3"', "labels", ("m,a=1,2", "m,b=3")),
        ("-v4", "v", 4),
        ("-v=4", "v", 4),
        ("-v 4", "v", 4),
        ("--v=4", "v", 4),
        ("-hv4", "v", 4),
        ("--port=1 --port=2", "port", 2),
    ],
)
def test_a_flag_is_parsed(words: str, name: str, value: object) -> None:
    parsed = parse_words(*words.split())
    assert parsed[name] == value
    assert name in parsed.changed


def test_an_absent_flag_has_its_default_and_is_not_changed() -> None:
    parsed = parse_words("--port=1")
    assert (parsed["leader-elect"], parsed["paths"]) == (True, ("/healthz",))
    assert parsed.changed == {"port"}


@pytest.mark.parametrize(
    ("words", "arguments"),
    [("a --port=1 b", ["a", "b"]), ("-- --port=1", ["--port=1"]), ("--leader-elect false", ["false"]), ("-", ["-"])],
)
def test_a_word_that_is_not_a_flag_is_an_argument(words: str, arguments: list[str]) -> None:
    assert parse_words(*words.split()).arguments == arguments


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--nothing-like-it", "unknown flag: --nothing-like-it"),
        ("--leader-elct=true", 'unknown flag: --leader-elct; did you mean "--leader-elect"?'),
        ("-port=1", "unknown shorthand flag: 'p' in -port=1; long flags begin with two dashes"),
        ("--config", "flag needs an argument: --config"),
        ("-v", "flag needs an argument: 'v' in -v"),
        ("--=x", "bad flag syntax: --=x"),
        ("--leader-elect=maybe", 'invalid argument "maybe" for "--leader-elect" flag: want true or false'),
        (
            "--lease-duration=5",
            'invalid argument "5" for "--lease-duration" flag: time: missing unit in duration "5"',
        ),
        ("--port=x", 'invalid argument "x" for "--port" flag: want a whole number'),
        ("--address=x", 'invalid argument "x" for "--address" flag: failed to parse IP: "x"'),
        ("--labels=x", 'invalid argument "x" for "--labels" flag: x must be formatted as key=value'),
        ("--v=-1", 'invalid argument "-1" for "-v, --v" flag: want a number from 0 to 2147483647'),
    ],
)
def test_an_invalid_command_line_is_one_error(words: str, message: str) -> None:
    with pytest.raises(FlagError) as caught:
        parse_words(*words.split())
    assert str(caught.value) == message


def test_the_help_text_has_usage_description_groups_and_end() -> None:
    groups = {
        "Serving": (
            Flag("port", INT, 8080, "Port to listen on."),
            Flag("quiet", BOOL, False, "Log errors only.", short="q"),
        ),
        "Other": (Flag("grace", DURATION, 0.0, "Time to drain."),),
    }
    assert format_help("app [flags]", "First paragraph.\n\nSecond paragraph.", groups, "Examples:\n  app\n", 60) == (
        "Usage:\n  app [flags]\n\n"
        "First paragraph.\n\nSecond paragraph.\n\n"
        "Serving flags:\n"
        "      --port int        Port to listen on. (default 8080)\n"
        "  -q, --quiet           Log errors only.\n\n"
        "Other flags:\n"
        "      --grace duration  Time to drain.\n\n"
        "Examples:\n  app\n"
    )


def test_a_deprecated_flag_and_a_flag_without_effect_are_marked() -> None:
    groups = {
        "Old": (
            Flag("old", BOOL, False, "Old behaviour.", deprecated="is ignored"),
            Flag("unused", BOOL, False, "Unused.", no_effect_reason="there is nothing to change"),
        )
    }
    lines = format_help("app", "About.", groups, "", 100).splitlines()
    assert "      --old     DEPRECATED: Old behaviour. It is ignored." in lines
    assert "      --unused  Unused. Accepted without effect: there is nothing to change." in lines


def test_a_long_flag_name_stands_on_its_own_line() -> None:
    groups = {"Only": (Flag("a-flag-with-a-very-long-name", BOOL, False, "Help."),)}
    assert "      --a-flag-with-a-very-long-name\n                    Help." in format_help(
        "app", "About.", groups, "", 40
    )
