"""Edit distances computed by hand, and the suggestions that follow from them."""

import pytest

from extender.basics.edit_distance import compute_edit_distance, find_nearest_names


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        ("web", "web", 0),
        ("web", "wep", 1),
        ("web", "wbe", 1),
        ("web", "webs", 1),
        ("", "abc", 3),
        ("kitten", "sitting", 3),
        ("deployment", "depolyments", 2),
    ],
)
def test_an_edit_distance_counts_insertions_deletions_replacements_and_swaps(
    first: str, second: str, distance: int
) -> None:
    assert compute_edit_distance(first, second, 5) == distance
    assert compute_edit_distance(second, first, 5) == distance


def test_a_distance_beyond_the_limit_is_the_limit_plus_one() -> None:
    assert compute_edit_distance("kitten", "sitting", 2) == 3
    assert compute_edit_distance("a", "abcdef", 2) == 3


def test_only_the_nearest_names_are_suggested() -> None:
    assert find_nearest_names("shop/wep", ["shop/api-1", "shop/web", "shop/wet", "shop/cart"]) == [
        "shop/web",
        "shop/wet",
    ]


def test_the_case_of_letters_does_not_count() -> None:
    assert find_nearest_names("deplyment", ["Deployment", "DaemonSet"]) == ["Deployment"]


def test_a_name_that_differs_in_more_than_a_third_is_not_suggested() -> None:
    assert find_nearest_names("web", ["cart", "wab", "api"]) == ["wab"]
    assert find_nearest_names("zzz", ["cart", "web"]) == []
