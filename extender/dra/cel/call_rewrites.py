"""Rewrites of calls that Kubernetes supports but the CEL library lacks.

- `transformMap` and `transformMapEntry` become a `transformList` of small maps, which are then merged.
- `existsOne` and `exists_one` are two names of one macro. The library has `exists_one` only with one variable and
  `existsOne` only with two.
- The library's `indexOf` and `lastIndexOf` do not accept lists, and its `string` does not accept addresses. Overloads
  for lists and addresses would conflict with the library's overloads.
- The library's `getMilliseconds` of a duration is the part of a second, not the whole.
- The library's `substring` rejects an end that equals the length of the string.
- `validate` and `format.named` return optional values, which are made from lists (see `formats`).
- `unwrapOpt` and `optional.unwrap` become a `filter` and a `map` of a list of optional values.
- List functions whose cost depends on the length, loops that make lists, and `matches`, first add their cost (see
  `costs`).
- If `exists` or `all` ends before the last element, the library leaves values behind that a later `cel.bind`, `optMap`,
  `optFlatMap` or `sortBy` takes for the value of its own variable. A loop with two variables that follows clears them.

Names in rewritten expressions begin with two underscores; `find_reserved_name` rejects such names in the input.

Source: dynamic-resource-allocation/cel/compile.go, newCompiler (1.36).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from extender.dra.cel.tokens import Edit, Token, apply_edits, get_text_at, match_brackets, tokenize

_MAX_OPERAND_STEPS: Final = 200  # the library rejects an operand with more than 32 calls or fields
_LINEAR_COST: Final = "__it.size()"
_QUADRATIC_COST: Final = "2 * __it.size() * __it.size()"
_APPENDING_COST: Final = "__it.size() * __it.size() / 4"
"""The cost of a loop that makes a list. The library copies the list for each new element, and frees no copy before the
end of the evaluation: 2,000 elements, the most that this cost allows, take 64 MB. cel-go appends to one list."""
_UNWRAP_OPTIONALS: Final = "__it, __it.hasValue()).map(__it, __it.value())"


class _Call(NamedTuple):
    """A call in an expression.

    Attributes:
        tokens: the tokens of the expression.
        receiver_index: the index of the receiver's first token; without a receiver, `name_index`.
        name_index: the index of the name.
        comma_indices: the indices of the commas between its arguments.
        close_index: the index of its closing bracket.
    """

    tokens: Sequence[Token]
    receiver_index: int
    name_index: int
    comma_indices: tuple[int, ...]
    close_index: int

    def insert_before(self, text: str) -> Edit:
        start = self.tokens[self.receiver_index].start
        return start, start, text

    def replace_token(self, index: int, text: str) -> Edit:
        return self.tokens[index].start, self.tokens[index].end, text


_Rewrite = Callable[[_Call], tuple[Edit, ...]]
_Rewrites = Mapping[tuple[str, int], _Rewrite]
"""Rewrites by the name of the call and the number of its arguments."""


def _rename_to(name: str) -> _Rewrite:
    return lambda call: (call.replace_token(call.name_index, name),)


def _spend_cost_before(cost: str) -> _Rewrite:
    """Return the rewrite that adds *cost* before the call. In the expression *cost*, `__it` is the receiver."""
    spending = f", __spend({cost}) ? __it : __it)."
    return lambda call: (call.insert_before("cel.bind(__it, "), call.replace_token(call.name_index - 1, spending))


_SPEND_APPENDING_COST: Final = _spend_cost_before(_APPENDING_COST)


def _pass_arguments_as_list(name: str) -> _Rewrite:
    return lambda call: (
        call.replace_token(call.name_index, name),
        call.replace_token(call.name_index + 1, "(["),
        call.replace_token(call.close_index, "])"),
    )


def _rewrite_transform_map_entry(call: _Call) -> tuple[Edit, ...]:
    return (
        call.insert_before("__mergeMaps("),
        *_SPEND_APPENDING_COST(call),
        call.replace_token(call.name_index, "transformList"),
        call.replace_token(call.close_index, "))"),
    )


def _rewrite_transform_map(call: _Call) -> tuple[Edit, ...]:
    key = call.tokens[call.name_index + 2].text
    return (
        call.insert_before("__mergeMaps("),
        *_SPEND_APPENDING_COST(call),
        call.replace_token(call.name_index, "transformList"),
        call.replace_token(call.comma_indices[-1], f", {{{key}: "),
        call.replace_token(call.close_index, "}))"),
    )


def _choose_after(positive: str, negative: str) -> _Rewrite:
    """Return the rewrite to a choice: *positive* if the call returns true, else *negative*."""
    return lambda call: (
        call.insert_before("("),
        call.replace_token(call.close_index, f") ? {positive} : {negative})"),
    )


_METHODS: Final[_Rewrites] = {
    ("existsOne", 2): _rename_to("exists_one"),
    ("exists_one", 3): _rename_to("existsOne"),
    **dict.fromkeys(
        (("map", 2), ("map", 3), ("filter", 2), ("transformList", 3), ("transformList", 4)), _SPEND_APPENDING_COST
    ),
    **dict.fromkeys((("transformMap", 3), ("transformMap", 4)), _rewrite_transform_map),
    **dict.fromkeys((("transformMapEntry", 3), ("transformMapEntry", 4)), _rewrite_transform_map_entry),
    **dict.fromkeys((("indexOf", 1), ("indexOf", 2)), _pass_arguments_as_list("__indexOf")),
    **dict.fromkeys((("lastIndexOf", 1), ("lastIndexOf", 2)), _pass_arguments_as_list("__lastIndexOf")),
    **dict.fromkeys((("substring", 1), ("substring", 2)), _rename_to("__substring")),
    ("charAt", 1): _rename_to("__charAt"),
    ("getMilliseconds", 0): _rename_to("__getMilliseconds"),
    ("matches", 1): lambda call: (
        call.replace_token(call.name_index + 1, "(__spendPattern("),
        call.replace_token(call.close_index, "))"),
    ),
    ("validate", 1): lambda call: (
        call.insert_before("optional.ofNonZeroValue("),
        call.replace_token(call.name_index, "__validate"),
        call.replace_token(call.close_index, "))"),
    ),
    ("unwrapOpt", 0): lambda call: (
        call.replace_token(call.name_index, "filter"),
        call.replace_token(call.close_index, _UNWRAP_OPTIONALS),
    ),
    **dict.fromkeys((("reverse", 0), ("flatten", 0), ("flatten", 1), ("slice", 2)), _spend_cost_before(_LINEAR_COST)),
    **dict.fromkeys((("distinct", 0), ("sort", 0), ("sortBy", 2)), _spend_cost_before(_QUADRATIC_COST)),
}

_FUNCTIONS: Final[_Rewrites] = {
    ("string", 1): lambda call: (
        call.replace_token(call.name_index + 1, "(__stringArgument("),
        call.replace_token(call.close_index, "))"),
    ),
    ("lists.range", 1): lambda call: (
        call.replace_token(call.name_index + 1, "(cel.bind(__it, "),
        call.replace_token(call.close_index, ", __spend(__it) && __it > 0 ? __it : 0))"),
    ),
    ("matches", 2): lambda call: (
        call.replace_token(call.comma_indices[0], ", __spendPattern("),
        call.replace_token(call.close_index, "))"),
    ),
    ("format.named", 1): lambda call: (call.replace_token(call.close_index, ")[?0]"),),
    ("optional.unwrap", 1): lambda call: (
        (call.tokens[call.receiver_index].start, call.tokens[call.name_index].end, ""),
        call.replace_token(call.close_index, f").filter({_UNWRAP_OPTIONALS}"),
    ),
}

_BINDING_MACROS: Final = frozenset({"bind", "optMap", "optFlatMap", "sortBy"})
_FULL_LOOP: Final = "[0].all(__it, __value, true)"
_LOOPS_THAT_END_EARLY: Final[_Rewrites] = {
    **dict.fromkeys((("exists", 2), ("exists", 3)), _choose_after(_FULL_LOOP, "false")),
    **dict.fromkeys((("all", 2), ("all", 3)), _choose_after("true", f"!{_FULL_LOOP}")),
}
"""The rewrites of loops in an expression that also has one of the `_BINDING_MACROS`."""


def rewrite_calls(expression: str) -> str:
    """Rewrite *expression* for the library."""
    text = _apply_rewrites(expression, _FUNCTIONS, _METHODS)
    if any(token.kind == "name" and token.text in _BINDING_MACROS for token in tokenize(text)):
        return _apply_rewrites(text, {}, _LOOPS_THAT_END_EARLY)
    return text


def _apply_rewrites(expression: str, functions: _Rewrites, methods: _Rewrites) -> str:
    tokens = tokenize(expression)
    edits: list[Edit] = []
    for call, rewrite in _find_calls(tokens, functions, methods):
        edits += rewrite(call)
    return apply_edits(expression, edits)


def find_reserved_name(expression: str) -> str:
    """Return the first function or device field in *expression* with a reserved name, or an empty string.

    Kubernetes has no functions or fields with reserved names. Variables of macros may have such names.
    """
    tokens = tokenize(expression)
    for index, token in enumerate(tokens):
        if token.kind == "name" and token.text.startswith("__"):
            is_device_field = get_text_at(tokens, index - 1) == "." and get_text_at(tokens, index - 2) == "device"
            if is_device_field or get_text_at(tokens, index + 1) == "(":
                return token.text
    return ""


def _find_calls(tokens: Sequence[Token], functions: _Rewrites, methods: _Rewrites) -> Iterator[tuple[_Call, _Rewrite]]:
    """Yield the calls to rewrite, from last to first. Of nested calls with an equal start, the outer comes first."""
    bracket_pairs = match_brackets(tokens)
    for index in range(len(tokens) - 1, -1, -1):
        if tokens[index].kind != "name" or get_text_at(tokens, index + 1) != "(" or index + 1 not in bracket_pairs:
            continue
        close = bracket_pairs[index + 1]
        commas = _find_commas(tokens, bracket_pairs, index + 1)
        argument_count = len(commas) + 1 if close > index + 2 else 0
        is_method = get_text_at(tokens, index - 1) == "."
        receiver = find_operand_start(tokens, bracket_pairs, index - 2) if is_method else index
        qualified_name = "".join(token.text for token in tokens[max(receiver, index - 3) : index + 1])
        rewrite = functions.get((qualified_name, argument_count)) or (
            methods.get((tokens[index].text, argument_count)) if is_method else None
        )
        if rewrite is not None:
            yield _Call(tokens, receiver, index, commas, close), rewrite


def _find_commas(tokens: Sequence[Token], bracket_pairs: dict[int, int], opening: int) -> tuple[int, ...]:
    """Return the indices of the commas between the arguments in the brackets that open at *opening*."""
    commas: list[int] = []
    index = opening + 1
    while index < bracket_pairs[opening]:
        if tokens[index].text == "," and tokens[index].kind == "other":
            commas.append(index)
        index = bracket_pairs.get(index, index) + 1
    return tuple(commas)


def find_operand_start(tokens: Sequence[Token], bracket_pairs: dict[int, int], index: int) -> int:
    """Return the index of the first token of the operand that ends at *index*. `a.b(c)[d]` is one operand."""
    for _ in range(_MAX_OPERAND_STEPS):
        index = min(index, bracket_pairs.get(index, index))
        previous = index - 1
        if get_text_at(tokens, previous) == "?" and get_text_at(tokens, previous - 1) == ".":
            previous -= 1
        is_bracket = tokens[index].kind == "other"
        if get_text_at(tokens, previous) == ".":
            if previous == 0 or not _ends_operand(tokens, previous - 1):
                return previous
            index = previous - 1
        elif is_bracket and previous >= 0 and _ends_operand(tokens, previous):
            index = previous
        else:
            return index
    return index


def _ends_operand(tokens: Sequence[Token], index: int) -> bool:
    token = tokens[index]
    return token.text in {")", "]", "}"} if token.kind == "other" else token.text != "in"
