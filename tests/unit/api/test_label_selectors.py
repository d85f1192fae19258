"""Label selectors in kubectl's notation."""

import pytest

from extender.api.label_selectors import parse_label_selector


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("", {}, True),
        ("app=web", {"app": "web"}, True),
        ("app==web", {"app": "api"}, False),
        ("app!=web", {}, True),
        ("app in (web, api),tier=front", {"app": "api", "tier": "front"}, True),
        ("app notin (web)", {"app": "web"}, False),
        ("!old", {"old": "1"}, False),
        ("old", {"old": ""}, True),
        ("cores>3", {"cores": "4"}, True),
    ],
)
def test_a_selector_matches_labels(text: str, labels: dict[str, str], matches: bool) -> None:
    requirements = parse_label_selector(text)
    assert all(requirement.matches(labels.get(requirement.key)) for requirement in requirements) is matches


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b", "couldn't parse the selector string 'a b': unable to parse requirement 'a b'"),
        ("app=a,,b", "couldn't parse the selector string 'app=a,,b': unable to parse requirement ''"),
    ],
)
def test_a_text_that_is_no_selector_is_an_error(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="selector") as caught:
        parse_label_selector(text)
    assert str(caught.value) == message
