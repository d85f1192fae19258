"""The functions `find` and `findAll`, which return the matches of a regular expression.

The matches are found by RE2 through the library's extension `regex`. The run time of RE2 is linear in the length of the
text for every pattern. If a pattern has a capturing group, the extension's `extract` returns the text of the group, not
of the whole match. Therefore the capturing groups of a pattern are made non-capturing first.
The extension's `extractAll` omits empty matches and searches the rest of the text for each further match, so that `^`
matches there too. Its `replace` finds the same matches as Go. Therefore `findAll` puts each match between two marks.

Source: apiserver/pkg/cel/library/regex.go; apiserver/pkg/cel/library/cost.go, CallCost, find (1.36).
"""

import re
from functools import cache
from importlib import import_module
from typing import Any, Final

from extender.dra.cel.costs import COST_METER

_STRING_FACTOR: Final = 10
"""The number of characters of a text per unit of cost."""

_PATTERN_FACTOR: Final = 4
"""The number of characters of a pattern per unit of cost."""

_EXTENSIONS: Final = "extensions:\n  - {name: regex}\n  - {name: optional}\n"
_MARKS: Final = (*range(0xE000, 0xF900), *range(0xF0000, 0x10FFFE))
"""The code points for private use. A text within the limits of a CEL value rarely contains the first of them."""

# An escape, a quotation, a character class, or the beginning of a group. Only the last one, `open`, is replaced.
_SYNTAX: Final = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|(?P<open>\((?:\?P?<\w+>|(?!\?)))", re.DOTALL
)

_REPETITION: Final = re.compile(r"(\)?)\{(\d{1,4})(?:,(\d{0,4}))?\}", re.ASCII)
_MAX_REPETITIONS: Final = 1000  # RE2 rejects more, also those of nested repetitions together
_UNICODE_CLASS_LENGTH: Final = 1000
"""The number of characters that take as long to compile as a Unicode class: about 2 milliseconds."""


def spend_pattern(pattern: str) -> str:
    r"""Add the cost of compiling *pattern*, as each match does, and return it.

    RE2 expands repetitions and Unicode classes: `(\pL\pN){300}` takes 100 ms. Kubernetes compiles a constant once.
    """
    repetitions, group_repetitions = 1, 1
    for after_group, first, last in _REPETITION.findall(pattern):
        count = max(int(first), int(last or 0), 1)
        if after_group:
            group_repetitions = min(group_repetitions * count, _MAX_REPETITIONS)
        else:
            repetitions = max(repetitions, count)
    length = len(pattern) + _UNICODE_CLASS_LENGTH * pattern.lower().count("\\p")
    COST_METER.spend(length * min(repetitions * group_repetitions, _MAX_REPETITIONS))
    return pattern


@cache
def _compile_programs() -> tuple[Any, Any]:
    """Return the programs that extract the first match and replace all matches."""
    cel = import_module("cel_expr_python.cel")
    pool = import_module("google.protobuf.descriptor_pool").DescriptorPool()
    variables = dict.fromkeys(("text", "pattern", "replacement"), cel.Type.STRING)
    environment = cel.NewEnv(pool, variables=variables, config=cel.NewEnvConfigFromYaml(_EXTENSIONS))
    first_match = "regex.extract(text, pattern).orValue('')"
    return environment.compile(first_match), environment.compile("regex.replace(text, pattern, replacement)")


def _evaluate(program: Any, text: str, pattern: str, replacement: str = "") -> Any:
    COST_METER.spend(-(-len(text) // _STRING_FACTOR) * max(1, -(-len(pattern) // _PATTERN_FACTOR)))
    spend_pattern(pattern)
    non_capturing = _SYNTAX.sub(lambda match: "(?:" if match["open"] else match.group(), pattern)
    result = program.eval(data={"text": text, "pattern": non_capturing, "replacement": replacement})
    value = result.value()
    if str(result.type()) == "ERROR":
        _, _, message = str(value).partition(": ")
        raise ValueError(message)
    return value


def find(text: str, pattern: str) -> str:
    """Return the first match in *text*, or an empty string.

    Raises:
        ValueError: the pattern is invalid, or the cost limit is exceeded.
    """
    first_match: str = _evaluate(_compile_programs()[0], text, pattern)
    return first_match


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Return all matches in *text*, or the first *limit* of them. An empty match directly after another is left out.

    Raises:
        ValueError: the pattern is invalid, or the cost limit is exceeded.
    """
    mark = next(character for character in map(chr, _MARKS) if character not in text)
    marked_text: str = _evaluate(_compile_programs()[1], text, pattern, rf"{mark}\0{mark}")
    matches = marked_text.split(mark)[1::2]
    return matches if limit < 0 else matches[:limit]
