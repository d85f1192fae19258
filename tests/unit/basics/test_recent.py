"""Texts that come again: read once, told apart byte for byte, and forgotten when others need the room."""

import pytest

from extender.basics.recent import Recent


class Reader:
    """Reads a text as its capitals, and remembers what it read."""

    def __init__(self) -> None:
        self.read: list[bytes] = []

    def __call__(self, text: bytes) -> bytes:
        """The capitals of *text*."""
        self.read.append(text)
        return text.upper()


def test_a_text_that_comes_again_is_not_read_again() -> None:
    recent, reader = Recent[bytes](100), Reader()
    first = recent.of(b"ab", reader)
    assert first == b"AB"
    assert recent.of(bytes(bytearray(b"ab")), reader) is first
    assert recent.of(b"abc", reader) == b"ABC"
    assert reader.read == [b"ab", b"abc"]


def test_the_text_seen_longest_ago_makes_room() -> None:
    recent, reader = Recent[bytes](6), Reader()
    for text in (b"aa", b"bb", b"cc", b"aa", b"dd"):
        recent.of(text, reader)
    reader.read.clear()
    for text in (b"aa", b"cc", b"dd", b"bb"):
        recent.of(text, reader)
    assert reader.read == [b"bb"]


def test_a_text_bigger_than_all_the_room_is_read_and_not_kept() -> None:
    recent, reader = Recent[bytes](3), Reader()
    assert recent.of(b"long", reader) == b"LONG"
    assert len(recent) == 0


def test_what_cannot_be_read_is_not_kept() -> None:
    recent: Recent[int] = Recent(100)
    with pytest.raises(ValueError, match="invalid literal"):
        recent.of(b"x", int)
    assert len(recent) == 0
