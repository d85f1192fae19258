"""The version of answers, and which versions are readable."""

import pytest

from extender.answers.schema_version import AnswerKind, is_readable, make_answer


def test_an_answer_starts_with_the_version_and_the_kind() -> None:
    answer = make_answer(AnswerKind.FITS, {"fits": 3})
    assert list(answer.items()) == [("schemaVersion", "1.0"), ("kind", "Fits"), ("fits", 3)]


@pytest.mark.parametrize(
    ("version", "readable"), [("1.0", True), ("1.99", True), ("2.0", False), ("10.0", False), ("", False)]
)
def test_documents_of_the_same_major_version_are_readable(version: str, readable: bool) -> None:
    assert is_readable(version) is readable
