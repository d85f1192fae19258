"""The references that the CEL library keeps after calls of our functions, and that are released."""

import gc
import sys
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from cel_expr_python import cel

from extender.dra.cel.environment import EvaluationError, compile_expression
from extender.dra.cel.library_references import LibraryReferences
from tests.unit.dra.cel.test_environment import ATTRS, DEVICE

EXPRESSIONS = [
    'quantity("1Gi").isGreaterThan(quantity("1Mi"))',
    'semver("1.2.3").isLessThan(semver("1.2.4"))',
    'device.driver.indexOf("x") == 0',
    '"1.2.3".matches("[0-9]")',
    '["a", "b"].isSorted()',
    '{"a": 1}.transformMap(k, v, v).size() == 1',
    f'{ATTRS}.missing.matches("a")',
    "lists.range(1000).isSorted()",
    'quantity("x").isGreaterThan(quantity("1Mi"))',
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_evaluations_keep_no_objects(expression: str) -> None:
    compiled_expression = compile_expression(expression)

    def evaluate() -> None:
        with suppress(EvaluationError):
            compiled_expression.matches(DEVICE)

    evaluate()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(500):
        evaluate()
    gc.collect()
    assert sys.getallocatedblocks() - before < 500  # caches of protobuf vary by less than 200


RESULTS = {
    "an integer": (cel.Type.INT, 12_345),
    "a number": (cel.Type.DOUBLE, 1.5),
    "a text": (cel.Type.STRING, "text" * 9),
    "bytes": (cel.Type.BYTES, b"bytes"),
    "a list": (cel.Type.List(cel.Type.STRING), ["text"]),
    "a map": (cel.Type.Map(cel.Type.STRING, cel.Type.STRING), {"text": "text"}),
    "a duration": (cel.Type.DURATION, timedelta(seconds=1)),
    "another type": (cel.Type.STRING, ["text"]),
}


@pytest.mark.parametrize(("result_type", "result"), RESULTS.values(), ids=RESULTS)
def test_one_reference_to_a_result_is_released(result_type: Any, result: Any) -> None:
    references = LibraryReferences(cel)
    function = cel.FunctionDecl(
        "f", [cel.Overload("f", result_type, [], is_member=False, impl=references.wrap(lambda: result))]
    )
    program = cel.NewEnv(functions=[function]).compile("f()")
    before = sys.getrefcount(result)
    for _ in range(10):
        program.eval(data={})
        references.release()
    assert sys.getrefcount(result) == before


def test_nothing_is_released_if_the_library_keeps_no_references(monkeypatch: pytest.MonkeyPatch) -> None:
    references = LibraryReferences(cel)
    monkeypatch.setattr(references, "_must_release", False)
    result = "text" * 9
    call = references.wrap(lambda argument: result)
    before = sys.getrefcount(result)
    assert call("argument") is result
    references.release()
    assert sys.getrefcount(result) == before
