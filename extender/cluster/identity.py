"""Whether two values are equal, told by their bytes, which can be looked up."""

import msgspec

_encoder = msgspec.msgpack.Encoder(order="deterministic")


def identity(value: object) -> bytes:
    """The bytes that two values of one type share if and only if they are equal."""
    try:
        return _encoder.encode(value)
    except OverflowError:  # a quantity written as a number beyond 64 bits
        return repr(value).encode()
