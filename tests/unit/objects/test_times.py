"""Points in time as the API server writes them."""

from extender.objects.times import micro_stamp, stamp


def test_a_time_has_whole_seconds_and_a_fraction_is_cut_off() -> None:
    assert stamp(1_700_000_000.999) == "2023-11-14T22:13:20Z"


def test_a_micro_time_has_six_decimal_places_also_where_they_are_zeros() -> None:
    assert micro_stamp(1_700_000_000.5) == "2023-11-14T22:13:20.500000Z"
    assert micro_stamp(1_700_000_000.0) == "2023-11-14T22:13:20.000000Z"
