"""The help text of commands with many flags."""

from extender.cli.flag_help import format_help
from extender.cli.pflag import BOOL, DURATION, INT, Flag


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
