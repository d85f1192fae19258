"""Parts of JSON bodies: fields without duplicates, and cuts at the parts of a big field."""

import msgspec
import pytest

from extender.extender_api.json_parts import (
    MAX_DECODE_BYTES,
    BodyForm,
    cut_body,
    decode_as,
    decode_casefolded_fields,
    decode_non_null_fields,
    decode_unique_fields,
)
from extender.extender_api.request_limits import MAX_OBJECT_BYTES, RequestError

FORM = BodyForm(b',"items":[', b"]}", b'},{"name"')


def test_fields_are_raw_and_nulls_are_left_out_on_request() -> None:
    data = b'{"a": null, "B": [1]}'
    assert decode_unique_fields(data, "") == {"a": msgspec.Raw(b"null"), "B": msgspec.Raw(b"[1]")}
    assert decode_non_null_fields(data, "") == {"B": msgspec.Raw(b"[1]")}
    assert decode_casefolded_fields(data) == {"b": msgspec.Raw(b"[1]")}


def test_duplicate_keys_are_rejected_in_any_case() -> None:
    with pytest.raises(RequestError, match='Nodes: duplicate key "items"'):
        decode_unique_fields(b'{"items": [], "Items": []}', "Nodes")


def test_a_value_of_a_wrong_type_is_rejected_with_its_field() -> None:
    with pytest.raises(RequestError, match=r"NodeNames\[0\]: Expected `str`, got `int`"):
        decode_as(b"[1]", list[str], "NodeNames")


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        (b'{"a":1,"items":[]}', []),
        (b'{"a":1,"items":[{"name":"x"}]}', [b'{"name":"x"}']),
        (b'{"a":1,"items":[{"name":"x"},{"name":"y"}]}', [b'{"name":"x"}', b'{"name":"y"}']),
    ],
    ids=["none", "one", "two"],
)
def test_a_body_is_cut_at_its_parts(body: bytes, parts: list[bytes]) -> None:
    cut = cut_body(body, FORM)
    assert cut is not None
    assert cut.body_without_parts == b'{"a":1,"items":[]}'
    assert list(cut.iterate_parts()) == parts


@pytest.mark.parametrize(
    "body",
    [b"", b'{"a":1,"items":[]} ', b'{"items":[]}', b'{"a":"' + b"x" * MAX_OBJECT_BYTES + b'","items":[]}'],
    ids=["nothing", "text after the closing", "no field before the big one", "a big field before"],
)
def test_a_body_of_another_form_is_not_cut(body: bytes) -> None:
    assert cut_body(body, FORM) is None


def test_a_part_above_the_limit_is_rejected() -> None:
    cut = cut_body(b'{"a":1,"items":[{"name":"' + b"x" * MAX_DECODE_BYTES + b'"},{"name":"y"}]}', FORM)
    assert cut is not None
    with pytest.raises(RequestError) as caught:
        list(cut.iterate_parts())
    assert caught.value.status == 413
