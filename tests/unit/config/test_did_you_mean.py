"""Suggestions for misspelled names."""

import pytest

from extender.config.did_you_mean import did_you_mean, find_closest_name

NAMES = ("NodeAffinity", "NodeName", "InterPodAffinity")


@pytest.mark.parametrize(
    ("name", "closest"),
    [("NodeAfinity", "NodeAffinity"), ("nodename", "NodeName"), ("NodeName", "NodeName"), ("Unlike", None), ("", None)],
)
def test_the_closest_name_ignores_case(name: str, closest: str | None) -> None:
    assert find_closest_name(name, NAMES) == closest


def test_a_suggestion_ends_a_message_unless_the_name_is_known() -> None:
    assert did_you_mean("NodeAfinity", NAMES) == '; did you mean "NodeAffinity"?'
    assert did_you_mean("NodeName", NAMES) == ""
    assert did_you_mean("Unlike", NAMES) == ""
