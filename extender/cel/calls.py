"""Calls that Kubernetes knows and the library does not, or not with that many arguments, written in what it knows.

- `transformMap` and `transformMapEntry` become a `transformList` of small maps, merged afterwards.
- `existsOne` and `exists_one` are one macro, with one variable or two; the library has one name for each.
- `indexOf` of a list would clash with that of a text, and `string` of an address with that of a number.
- `validate` and `format.named` give optional values, `unwrapOpt` and `optional.unwrap` take a list of them.
- Functions of lists whose cost grows faster than what they are given say first what they will cost (see `costs`).

What is written begins with two underscores; `invented` finds what only rewriting may write. Source: B123.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from extender.cel.tokens import Edit, Token, brackets, edited, text_at, tokens

_LINEAR: Final = "__it.size()"
_SQUARE: Final = "2 * __it.size() * __it.size()"
_UNWRAPPED: Final = "__it, __it.hasValue()).map(__it, __it.value())"


class _Call(NamedTuple):
    """A call in an expression.

    Attributes:
        words: of the expression.
        first: the word its receiver begins with, or the name's if it has none.
        name: the word that is the name.
        commas: between its arguments.
        close: its last bracket.
    """

    words: Sequence[Token]
    first: int
    name: int
    commas: tuple[int, ...]
    close: int

    def before(self, text: str) -> Edit:
        """*text* before the receiver."""
        start = self.words[self.first].start
        return start, start, text

    def instead(self, at: int, text: str) -> Edit:
        """*text* instead of a word."""
        return self.words[at].start, self.words[at].end, text


_Rewriting = Callable[[_Call], tuple[Edit, ...]]


def _named(name: str) -> _Rewriting:
    return lambda call: (call.instead(call.name, name),)


def _afforded(cost: str) -> _Rewriting:
    """The receiver is counted before the call."""
    asked = f", __spend({cost}) ? __it : __it)."
    return lambda call: (call.before("cel.bind(__it, "), call.instead(call.name - 1, asked))


def _listed_arguments(name: str) -> _Rewriting:
    return lambda call: (
        call.instead(call.name, name),
        call.instead(call.name + 1, "(["),
        call.instead(call.close, "])"),
    )


def _merged_entries(call: _Call) -> tuple[Edit, ...]:
    return call.before("__merged("), call.instead(call.name, "transformList"), call.instead(call.close, "))")


def _merged_values(call: _Call) -> tuple[Edit, ...]:
    key = call.words[call.name + 2].text
    return (
        call.before("__merged("),
        call.instead(call.name, "transformList"),
        call.instead(call.commas[-1], f", {{{key}: "),
        call.instead(call.close, "}))"),
    )


_METHODS: Final[dict[tuple[str, int], _Rewriting]] = {
    ("existsOne", 2): _named("exists_one"),
    ("exists_one", 3): _named("existsOne"),
    **dict.fromkeys((("transformMap", 3), ("transformMap", 4)), _merged_values),
    **dict.fromkeys((("transformMapEntry", 3), ("transformMapEntry", 4)), _merged_entries),
    **dict.fromkeys((("indexOf", 1), ("indexOf", 2)), _listed_arguments("__indexOf")),
    **dict.fromkeys((("lastIndexOf", 1), ("lastIndexOf", 2)), _listed_arguments("__lastIndexOf")),
    ("validate", 1): lambda call: (
        call.before("optional.ofNonZeroValue("),
        call.instead(call.name, "__validate"),
        call.instead(call.close, "))"),
    ),
    ("unwrapOpt", 0): lambda call: (call.instead(call.name, "filter"), call.instead(call.close, _UNWRAPPED)),
    **dict.fromkeys((("reverse", 0), ("flatten", 0), ("flatten", 1), ("slice", 2)), _afforded(_LINEAR)),
    **dict.fromkeys((("distinct", 0), ("sort", 0), ("sortBy", 2)), _afforded(_SQUARE)),
}

_FUNCTIONS: Final[dict[tuple[str, int], _Rewriting]] = {
    ("string", 1): lambda call: (call.instead(call.name + 1, "(__plain("), call.instead(call.close, "))")),
    ("lists.range", 1): lambda call: (
        call.instead(call.name + 1, "(cel.bind(__it, "),
        call.instead(call.close, ", __spend(__it) && __it > 0 ? __it : 0))"),
    ),
    ("format.named", 1): lambda call: (call.instead(call.close, ")[?0]"),),
    ("optional.unwrap", 1): lambda call: (
        (call.words[call.first].start, call.words[call.name].end, ""),
        call.instead(call.close, f").filter({_UNWRAPPED}"),
    ),
}


def known(expression: str) -> str:
    """*expression* in what the library knows."""
    words = tokens(expression)
    edits: list[Edit] = []
    for call, rewriting in _calls(words):
        edits += rewriting(call)
    return edited(expression, edits)


def invented(expression: str) -> str:
    """The first function or field of a device in *expression* that begins as those that rewriting writes; or nothing.

    Kubernetes has none of such a name; variables of macros may have one, and do no harm.
    """
    words = tokens(expression)
    for at, word in enumerate(words):
        if word.kind == "name" and word.text.startswith("__"):
            field = text_at(words, at - 1) == "." and text_at(words, at - 2) == "device"
            if field or text_at(words, at + 1) == "(":
                return word.text
    return ""


def _calls(words: Sequence[Token]) -> Iterator[tuple[_Call, _Rewriting]]:
    """The calls to rewrite, the last first: where receivers begin at one place, the outer call's edits come first."""
    pairs = brackets(words)
    for at in range(len(words) - 1, -1, -1):
        if words[at].kind != "name" or text_at(words, at + 1) != "(" or at + 1 not in pairs:
            continue
        close = pairs[at + 1]
        commas = _commas(words, pairs, at + 1)
        count = len(commas) + 1 if close > at + 2 else 0
        method = text_at(words, at - 1) == "."
        first = _start(words, pairs, at - 2) if method else at
        whole = "".join(word.text for word in words[first : at + 1])
        rewriting = _FUNCTIONS.get((whole, count)) or (_METHODS.get((words[at].text, count)) if method else None)
        if rewriting is not None:
            yield _Call(words, first, at, commas, close), rewriting


def _commas(words: Sequence[Token], pairs: dict[int, int], opening: int) -> tuple[int, ...]:
    """The commas between the arguments of the call whose bracket opens at *opening*."""
    found: list[int] = []
    at = opening + 1
    while at < pairs[opening]:
        if words[at].text == "," and words[at].kind == "other":
            found.append(at)
        at = pairs.get(at, at) + 1
    return tuple(found)


def _start(words: Sequence[Token], pairs: dict[int, int], at: int) -> int:
    """Where the operand that ends at *at* begins: `a.b(c)[d]` is one."""
    while True:
        at = min(at, pairs.get(at, at))
        before = at - 1
        if text_at(words, before) == "?" and text_at(words, before - 1) == ".":
            before -= 1
        bracket = words[at].kind == "other"
        if text_at(words, before) == ".":
            if before == 0 or not _ends_operand(words, before - 1):
                return before
            at = before - 1
        elif bracket and before >= 0 and _ends_operand(words, before):
            at = before
        else:
            return at


def _ends_operand(words: Sequence[Token], at: int) -> bool:
    word = words[at]
    return word.text in {")", "]", "}"} if word.kind == "other" else word.text != "in"
