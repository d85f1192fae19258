"""Decode JSON bodies part by part.

msgspec takes about a millisecond for each MiB, and other tasks cannot run meanwhile. So a body in the form that Go
encodes is cut into parts, at a text that Go writes between two parts. This text contains quotes, so no JSON string can
contain it. Each part is decoded, so a wrong cut is detected. A body in another form is decoded in one call, and is
limited to `MAX_DECODE_BYTES`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from extender.api.codec import DecodeError, decode
from extender.api.extender_v1 import RAW_NULL
from extender.extender_api.request_limits import MAX_OBJECT_BYTES, RequestError

T = TypeVar("T")

MAX_DECODE_BYTES: Final = 16 << 20
"""Limit of the JSON that is decoded in one call."""

MAX_FIELDS: Final = 1_000
"""Limit of the fields of a request, or of its list of nodes. A request of kube-scheduler has three."""


MAX_VALUES_WITH_NULL: Final = 5_000
"""Limit of the values in JSON with an explicit null, or with a value of the wrong type, that is decoded again."""


def decode_as(data: bytes | bytearray | msgspec.Raw, target_type: type[T], path: str) -> T:
    """Decode JSON as *target_type*; *path* names the field in errors.

    Raises:
        RequestError: 400, with the field.
    """
    try:
        return decode(data, target_type, max_second_attempt=MAX_VALUES_WITH_NULL)
    except DecodeError as error:
        separator = "." if path and error.path and not error.path.startswith("[") else ""
        location = f"{path}{separator}{error.path}"
        raise RequestError(400, f"{location or 'the body'}: {error.message}") from error


class _DistinctKey:
    """A JSON key that is equal to no other, so that a dictionary keeps duplicate keys."""

    __slots__ = ("name",)

    def __init__(self, _kind: type, name: str) -> None:
        self.name = name


class _KeyCounter:
    """Makes keys, up to a limit. The decoder calls it for each key."""

    __slots__ = ("count", "max_count")

    def __init__(self, max_count: int) -> None:
        self.count, self.max_count = 0, max_count

    def __call__(self, kind: type, name: str) -> _DistinctKey:
        self.count += 1
        if self.count > self.max_count:
            raise ValueError
        return _DistinctKey(kind, name)


def decode_unique_fields(
    data: bytes | bytearray | msgspec.Raw, path: str, max_fields: int = MAX_FIELDS
) -> Mapping[str, msgspec.Raw]:
    """Return the raw fields of a JSON object by name.

    Raises:
        RequestError: 400, it is not an object, or has a duplicate key; case is ignored. 413, it has more than
            *max_fields* fields.
    """
    key_counter = _KeyCounter(max_fields)
    try:
        pairs = msgspec.json.Decoder(dict[_DistinctKey, msgspec.Raw], dec_hook=key_counter).decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        if key_counter.count > max_fields:
            raise RequestError(413, f"{path or 'the body'}: more than {max_fields} fields") from error
        return decode_as(data, dict[str, msgspec.Raw], path)  # raises with the error's field
    seen_keys: set[str] = set()
    for key in pairs:
        casefolded_name = key.name.casefold()
        if casefolded_name in seen_keys:
            raise RequestError(400, f'{path or "the body"}: duplicate key "{casefolded_name[:64]}"')
        seen_keys.add(casefolded_name)
    return {key.name: raw for key, raw in pairs.items()}


def decode_non_null_fields(data: bytes | bytearray | msgspec.Raw, path: str) -> Mapping[str, msgspec.Raw]:
    """Return the raw fields of a JSON object that are not null, by name.

    Raises:
        RequestError: as for `decode_unique_fields`.
    """
    return {name: raw for name, raw in decode_unique_fields(data, path).items() if raw != RAW_NULL}


def decode_casefolded_fields(body: bytes | bytearray) -> Mapping[str, msgspec.Raw]:
    """Return the raw fields of a request that are not null, by name in lower case.

    Raises:
        RequestError: 400, it is not an object, or has a duplicate key; 413, it has more than `MAX_DECODE_BYTES`.
    """
    if len(body) > MAX_DECODE_BYTES:
        raise RequestError(
            413,
            f"a request of more than {MAX_DECODE_BYTES} bytes must have the form that kube-scheduler sends: the fields "
            "in the order of the Go struct, without whitespace",
        )
    return {name.casefold(): raw for name, raw in decode_non_null_fields(body, "").items()}


@dataclass(frozen=True, slots=True)
class BodyForm:
    """The form in which Go encodes a request with a big field.

    Attributes:
        opening: the text before the first part of the big field.
        closing: the text after its last part, at the end of the body.
        separator: the text that marks the end of each part except the last one. The first closing brace in or after
            this text is the last byte of the part.
    """

    opening: bytes
    closing: bytes
    separator: bytes


@dataclass(frozen=True, slots=True)
class CutBody:
    """A body that is cut at the parts of its big field.

    Attributes:
        start: the position of the first part.
        end: the position after the last part.
    """

    body: bytes | bytearray
    form: BodyForm
    start: int
    end: int

    @property
    def body_without_parts(self) -> bytes:
        """The body without the parts, so that its big field is empty."""
        return bytes(self.body[: self.start]) + bytes(self.body[self.end :])

    def iterate_parts(self) -> Iterator[bytes]:
        """Yield the JSON of each part.

        Raises:
            RequestError: 413, a part has more than `MAX_DECODE_BYTES`.
        """
        start = self.start
        while start < self.end:
            limit = min(self.end, start + MAX_DECODE_BYTES)
            separator_start = self.body.find(self.form.separator, start, limit)
            part_end = self.end if separator_start < 0 else self.body.find(b"}", separator_start, self.end) + 1
            if part_end - start > MAX_DECODE_BYTES:
                raise RequestError(413, f"a part of a request may have at most {MAX_DECODE_BYTES} bytes")
            yield bytes(self.body[start:part_end])
            start = part_end + 1


def cut_body(body: bytes | bytearray, form: BodyForm) -> CutBody | None:
    """Return *body* with the range of its parts; None if it does not have *form*."""
    position = body.find(form.opening, 0, MAX_OBJECT_BYTES + len(form.opening))  # only the pod is before the big field
    start, end = position + len(form.opening), len(body) - len(form.closing)
    return CutBody(body, form, start, end) if position >= 0 and start <= end and body.endswith(form.closing) else None
