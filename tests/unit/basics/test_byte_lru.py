"""ByteLRU: values are created once per byte string and evicted when their estimated memory exceeds the limit."""

from random import Random

import pytest

from extender.basics.byte_lru import ByteLRU, estimate_decoded_bytes


class RecordingDecoder:
    """Upper-cases a byte string and records each call."""

    def __init__(self) -> None:
        self.calls: list[bytes] = []

    def __call__(self, data: bytes) -> bytes:
        """Return *data* in upper case."""
        self.calls.append(data)
        return data.upper()


def test_an_equal_key_is_not_decoded_again() -> None:
    cache, decoder = ByteLRU[bytes](100, len), RecordingDecoder()
    first = cache.get_or_create(b"ab", decoder)
    assert first == b"AB"
    assert cache.get_or_create(bytes(bytearray(b"ab")), decoder) is first
    assert cache.get_or_create(b"abc", decoder) == b"ABC"
    assert decoder.calls == [b"ab", b"abc"]


def test_the_least_recently_used_key_is_evicted_first() -> None:
    cache, decoder = ByteLRU[bytes](6, len), RecordingDecoder()
    for data in (b"aa", b"bb", b"cc", b"aa", b"dd"):
        cache.get_or_create(data, decoder)
    decoder.calls.clear()
    for data in (b"aa", b"cc", b"dd", b"bb"):
        cache.get_or_create(data, decoder)
    assert decoder.calls == [b"bb"]


@pytest.mark.parametrize(("rng", "most"), [(Random(0), 40), (None, 110)], ids=["random", "least recently used"])
def test_of_keys_that_repeat_in_a_cycle_only_a_part_is_decoded_again_if_random_ones_are_evicted(
    rng: Random | None, most: int
) -> None:
    """There are 110 keys of 3 bytes, and 100 are cached. The least recently used one is always needed next."""
    cache, decoder = ByteLRU[bytes](300, len, rng), RecordingDecoder()
    for _ in range(10):
        decoder.calls.clear()
        for number in range(110):
            cache.get_or_create(b"%03d" % number, decoder)
        assert len(cache) <= 100
    assert most - 30 <= len(decoder.calls) <= most


def test_a_value_above_the_limit_is_decoded_and_evicts_nothing() -> None:
    cache, decoder = ByteLRU[bytes](3, len), RecordingDecoder()
    cache.get_or_create(b"abc", decoder)
    assert cache.get_or_create(b"long", decoder) == b"LONG"
    assert cache.get_or_create(b"abc", decoder) == b"ABC"
    assert decoder.calls == [b"abc", b"long"]


def test_a_failed_decode_is_not_cached() -> None:
    cache: ByteLRU[int] = ByteLRU(100)
    with pytest.raises(ValueError, match="invalid literal"):
        cache.get_or_create(b"x", int)
    assert len(cache) == 0


@pytest.mark.parametrize(
    ("data", "estimate"),
    [(b"", 512), (b"1234", 520), (b'{"a":["b"]}', 512 + 2 * 11 + 70 + 55 + 4 * 30)],
    ids=["nothing", "a number", "an object"],
)
def test_the_estimate_counts_objects_arrays_and_strings(data: bytes, estimate: int) -> None:
    assert estimate_decoded_bytes(data) == estimate
