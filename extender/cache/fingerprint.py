"""Encode values as bytes that can serve as dictionary keys in place of the values."""

from hashlib import blake2b
from typing import Final

import msgspec

_DIGEST_BYTES: Final = 32
_SIZE_BYTES: Final = 4

_encoder = msgspec.msgpack.Encoder(order="deterministic")


def fingerprint(value: object) -> bytes:
    """Encode *value* as bytes. Two values of one type have equal bytes if and only if the values are equal."""
    try:
        return _encoder.encode(value)
    except OverflowError:  # a quantity written as a number beyond 64 bits
        return repr(value).encode()


def short_fingerprint(value: object) -> bytes:
    """Return 36 bytes for *value*: the digest of its fingerprint, and the size of the fingerprint.

    Two values with equal bytes are equal: nobody can find two fingerprints with one digest of 256 bits. Use it for keys
    that stay in memory while many come and go. Keys of many hundred bytes, each of another size, fragment the heap.
    """
    encoded = fingerprint(value)
    return blake2b(encoded, digest_size=_DIGEST_BYTES).digest() + len(encoded).to_bytes(_SIZE_BYTES, "big")


def get_fingerprint_size(short: bytes) -> int:
    """Return the size of the fingerprint from which `short_fingerprint` made *short*, in bytes."""
    return int.from_bytes(short[_DIGEST_BYTES:], "big")
