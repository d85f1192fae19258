"""Encode values as bytes that can serve as dictionary keys in place of the values."""

import msgspec

_encoder = msgspec.msgpack.Encoder(order="deterministic")


def fingerprint(value: object) -> bytes:
    """Encode *value* as bytes. Two values of one type have equal bytes if and only if the values are equal."""
    try:
        return _encoder.encode(value)
    except OverflowError:  # a quantity written as a number beyond 64 bits
        return repr(value).encode()
