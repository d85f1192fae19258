"""ByteLRU: values are created once per byte string and evicted when the keys exceed the size limit."""

import pytest

from extender.basics.byte_lru import ByteLRU


class RecordingDecoder:
    """Upper-cases a byte string and records each call."""

    def __init__(self) -> None:
        self.calls: list[bytes] = []

    def __call__(self, data: bytes) -> bytes:
        """Return *data* in upper case."""
        self.calls.append(data)
        return data.upper()


def test_an_equal_key_is_not_decoded_again() -> None:
    cache, decoder = ByteLRU[bytes](100), RecordingDecoder()
    first = cache.get_or_create(b"ab", decoder)
    assert first == b"AB"
    assert cache.get_or_create(bytes(bytearray(b"ab")), decoder) is first
    assert cache.get_or_create(b"abc", decoder) == b"ABC"
    assert decoder.calls == [b"ab", b"abc"]


def test_the_least_recently_used_key_is_evicted_first() -> None:
    cache, decoder = ByteLRU[bytes](6), RecordingDecoder()
    for data in (b"aa", b"bb", b"cc", b"aa", b"dd"):
        cache.get_or_create(data, decoder)
    decoder.calls.clear()
    for data in (b"aa", b"cc", b"dd", b"bb"):
        cache.get_or_create(data, decoder)
    assert decoder.calls == [b"bb"]


def test_a_key_above_the_size_limit_is_decoded_but_not_cached() -> None:
    cache, decoder = ByteLRU[bytes](3), RecordingDecoder()
    assert cache.get_or_create(b"long", decoder) == b"LONG"
    assert len(cache) == 0


def test_a_failed_decode_is_not_cached() -> None:
    cache: ByteLRU[int] = ByteLRU(100)
    with pytest.raises(ValueError, match="invalid literal"):
        cache.get_or_create(b"x", int)
    assert len(cache) == 0
